import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Host } from '../src/host/host.ts'
import { rememberedFile, rememberedUses, rememberUse } from '../src/host/remembered.ts'
import { Problem } from '../src/lib/problem.ts'
import { createRunner } from '../src/lib/run.ts'
import { perform, performPost, performPre, type Stage } from '../src/perform.ts'
import type { World } from '../src/world.ts'

let folder: string
let log: string[]
let exits: number[]
let uses: string[]
/** Sends a signal, or an error that nobody caught. */
let send: (cause: NodeJS.Signals | Error) => void

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'perform-'))
  log = []
  exits = []
  uses = ['app-1']
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(folder, { recursive: true, force: true })
})

function stage(name: Host['name'], stories: Partial<Stage['stories']>): Stage {
  const note = (kind: string) => (message: string) => void log.push(`${kind}: ${message}`)
  const host = {
    name,
    folder,
    info: note('info'),
    warning: note('warning'),
    error: note('error'),
    debug: note('debug'),
    uses: async () => uses,
    summary: { when: name === 'github' ? 'always' : name === 'buildkite' ? 'on-failure' : 'never', draws: true },
    showSummary: async ({ style, markdown }: { style: string; markdown: string }) => note(style)(markdown),
  } as unknown as Host
  return {
    host,
    stories: {
      pre: async () => {},
      post: async () => void log.push('post runs'),
      load: async () => {},
      logs: async () => {},
      status: async () => {},
      'down-stale': async () => {},
      ...stories,
    },
    self: { node: '/node', cli: '/cli.js' },
    runner: signal => createRunner({ env: process.env, signal }),
    now: () => 0,
    listen: hear => {
      send = hear
    },
    exit: code => void exits.push(code),
  }
}

const fails = (error: Error) => async (): Promise<void> => {
  throw error
}
const withoutStacks = (): string[] => log.filter(line => !line.startsWith('debug: '))

test('pre that succeeds is code 0 and silent, but for the summary where the host shows one', async () => {
  expect(await performPre(stage('buildkite', {}))).toBe(0)
  expect(log).toEqual([])
  expect(await performPre(stage('github', {}))).toBe(0)
  expect(log).toEqual([expect.stringMatching(/^success: ### ✅ /)])
})

test.each(['always', 'on-failure', 'never'] as const)('the option summary: %s counts before the host', async when => {
  const chosen = async ({ report }: World): Promise<void> => {
    report.summary = when
  }
  await performPre(stage('github', { pre: chosen }))
  await performPre(
    stage('buildkite', {
      pre: async world => {
        await chosen(world)
        throw new Problem('no')
      },
    }),
  )
  expect(log.map(line => line.split(':')[0]).filter(kind => kind === 'success' || kind === 'error')).toEqual(
    { always: ['success', 'error', 'error'], 'on-failure': ['error', 'error'], never: ['error'] }[when],
  )
})

test('the summary has the warnings and the stages of the work, and is yellow for them', async () => {
  const pre = async ({ host, timeline }: World): Promise<void> => {
    host.warning('careful')
    await timeline.span('Wait for it', () => new Promise(resolve => setTimeout(resolve, 150)))
  }
  await performPre(stage('github', { pre }))
  expect(log[0]).toBe('warning: careful')
  expect(log[1]).toMatch(/^warning: ### ✅ .*- ⚠️ careful.*section Wait for it/s)
})

test('pre that fails tells the message, shows it where people look, keeps the stack for debug, and is code 1', async () => {
  const failure = new Problem('workers: "x" is not a whole number\nname: 7 is not text')
  expect(await performPre(stage('buildkite', { pre: fails(failure) }))).toBe(1)
  expect(log).toEqual([
    `error: ${failure.message}`,
    `debug: ${failure.stack}`,
    expect.stringMatching(
      /^error: ### ❌ kind-in-dind could not start the cluster\n\n> workers: .*<br>name: 7 is not text\n$/,
    ),
  ])
})

test('on a CI host pre leaves the removal to the host’s post, on a terminal it calls it', async () => {
  await performPre(stage('github', { pre: fails(new Problem('no')) }))
  expect(log).not.toContain('post runs')
  expect(await performPre(stage('terminal', { pre: fails(new Problem('no')) }))).toBe(1)
  expect(log.at(-1)).toBe('post runs')
})

test('on a terminal post is not called when pre failed before it made anything', async () => {
  uses = []
  await performPre(stage('terminal', { pre: fails(new Problem('no')) }))
  expect(log).not.toContain('post runs')
})

test('a failure ends what else was running before the process goes', async () => {
  let ended = false
  const pre = async ({ run }: World): Promise<void> => {
    run.run(['sleep', '60']).catch(() => {
      ended = true
    })
    throw new Problem('no')
  }
  await performPre(stage('github', { pre }))
  expect(ended).toBe(true)
})

test.each([
  ['SIGINT', 130],
  ['SIGTERM', 143],
  ['SIGHUP', 129],
] as const)('%s ends what runs, says one line, annotates nothing, and is code %i', async (signal, code) => {
  const pre = async ({ run }: World): Promise<void> => {
    const sleeping = run.run(['sleep', '60'])
    send(signal)
    await sleeping
  }
  expect(await performPre(stage('buildkite', { pre }))).toBe(code)
  expect(log).toEqual([`info: Cancelled (${signal}).`])
})

test('a pre that does not react to the signal is left behind within a second', async () => {
  // By the clock that its timers have, whatever else the machine does.
  vi.useFakeTimers()
  const pre = async (): Promise<void> => {
    await new Promise(resolve => setTimeout(resolve, 5000))
    send('SIGTERM')
    return new Promise(() => {})
  }
  let code: number | undefined
  void performPre(stage('github', { pre })).then(ended => {
    code = ended
  })
  await vi.advanceTimersByTimeAsync(5000)
  expect(code).toBeUndefined()
  await vi.advanceTimersByTimeAsync(999)
  expect(code).toBe(143)
})

test('what pre runs although it is cancelled goes on', async () => {
  const pre = async ({ run, runAnyway, signal }: World): Promise<void> => {
    const [sleeping, going] = [run.run(['sleep', '60']), runAnyway.run(['sleep', '0.2'])]
    send('SIGTERM')
    await expect(sleeping).rejects.toThrow('was ended')
    log.push(`${signal.aborted} ${(await going).code} ${(await runAnyway.run(['echo', 'removed'])).stdout.trim()}`)
  }
  await performPre(stage('buildkite', { pre }))
  expect(log[0]).toBe('true 0 removed')
})

test('a pre that ends well in spite of the signal is cancelled all the same', async () => {
  expect(await performPre(stage('github', { pre: async () => send('SIGTERM') }))).toBe(143)
})

test('a second signal ends the process at once', async () => {
  const pre = async (): Promise<void> => {
    send('SIGTERM')
    send('SIGINT')
  }
  await performPre(stage('github', { pre }))
  expect(exits).toEqual([130])
})

test('cancelled on a terminal, pre calls post with commands that still run', async () => {
  const post = async ({ run, signal }: World): Promise<void> => {
    log.push(`${signal.aborted} ${(await run.run(['echo', 'removed'])).stdout.trim()}`)
  }
  expect(await performPre(stage('terminal', { pre: async () => send('SIGINT'), post }))).toBe(130)
  expect(log.at(-1)).toBe('false removed')
})

test('an error that nobody caught is a failure of pre', async () => {
  const pre = ({ run }: World): Promise<void> => {
    const sleeping = run.run(['sleep', '60'])
    send(new Error('socket hang up'))
    return sleeping.then(() => {})
  }
  expect(await performPre(stage('github', { pre }))).toBe(1)
  expect(withoutStacks()[0]).toBe('error: socket hang up')
})

test.each(['github', 'buildkite'] as const)('on %s a post that fails is a warning and code 0', async name => {
  expect(await performPost(stage(name, { post: fails(new Problem('no engine')) }))).toBe(0)
  expect(withoutStacks()).toEqual(['warning: no engine'])
})

test('so is one with an error that nobody caught', async () => {
  const post = (): Promise<void> => {
    send(new Error('socket hang up'))
    return new Promise(() => {})
  }
  expect(await performPost(stage('github', { post }))).toBe(0)
  expect(withoutStacks()).toEqual(['warning: socket hang up'])
})

test('on a terminal down that fails is an error and code 1', async () => {
  expect(await performPost(stage('terminal', { post: fails(new Problem('no engine')) }))).toBe(1)
  expect(withoutStacks()).toEqual(['error: no engine'])
})

test('post goes on after one signal; the second leaves it', async () => {
  const post = async ({ run }: World): Promise<void> => {
    send('SIGTERM')
    log.push((await run.run(['echo', 'removed'])).stdout.trim())
    send('SIGTERM')
  }
  expect(await performPost(stage('github', { post }))).toBe(0)
  expect(log).toContain('removed')
  expect(exits).toEqual([0])
})

test('post leaves no list of uses that are gone', async () => {
  rememberUse(rememberedFile(folder), 'gone')
  await performPost(stage('buildkite', {}))
  expect(rememberedUses(rememberedFile(folder))).toEqual([])
})

test('a command that fails is told, is code 1, and removes nothing', async () => {
  const load = fails(new Problem('there is no cluster here'))
  expect(await perform('load', stage('terminal', { load }))).toBe(1)
  expect(withoutStacks()).toEqual(['error: there is no cluster here'])
})

test('a signal ends a command with the code that a shell tells', async () => {
  const load = async ({ run }: World): Promise<void> => {
    const running = run.run(['sleep', '60'])
    send('SIGINT')
    await running
  }
  expect(await perform('load', stage('github', { load }))).toBe(130)
})
