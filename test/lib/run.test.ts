import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { describe, expect, test, vi } from 'vitest'
import { type Argv, CommandFailed, CommandMissing, createRunner, lastLines, whatItSaid } from '../../src/lib/run.ts'

// Real processes: what is promised here is promised of the operating system's.

const ENV = { PATH: process.env['PATH'] }
const runner = createRunner({ env: ENV })
// Not bash, which reads ~/.bashrc where its stdin is a socket, as Node's pipes are.
const sh = (script: string): Argv => ['sh', '-c', script]

describe('the exit code', () => {
  test('0 gives what was said', async () => {
    const result = await runner.run(sh('echo out; echo err >&2'))
    expect(result).toEqual({ code: 0, stdout: 'out\n', stderr: 'err\n' })
  })

  test('another one fails run, with what was said last', async () => {
    const failure = await failureOf(runner.run(sh('echo out; echo err >&2; exit 3')))
    expect(failure.result).toEqual({ code: 3, stdout: 'out\n', stderr: 'err\n' })
    expect(failure.endedBy).toBeUndefined()
    expect(failure.message).toMatch(/: exit code 3: err$/)
  })

  test('where nothing was said on stderr, stdout tells', async () => {
    expect((await failureOf(runner.run(sh('echo out; exit 1')))).message).toMatch(/: exit code 1: out$/)
    expect((await failureOf(runner.run(['false']))).message).toBe('false: exit code 1')
  })

  test('another one is a result to try', async () => {
    expect(await runner.try(sh('exit 7'))).toEqual({ code: 7, stdout: '', stderr: '' })
  })

  test.each([
    ['KILL', 137],
    ['TERM', 143],
    ['USR1', 138],
    ['SEGV', 139],
  ])('a program that SIG%s ended has the code %d, as in a shell', async (signal, code) => {
    expect(await runner.try(sh(`kill -${signal} $$`))).toMatchObject({ code })
  })
})

describe('a program that is not there', () => {
  test.each(['run', 'try'] as const)('fails %s', async how => {
    const failure = await runner[how](['no-such-program-of-ours', 'x']).catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(CommandMissing)
    expect(failure).toMatchObject({
      program: 'no-such-program-of-ours',
      message: 'no-such-program-of-ours: no such program on PATH',
    })
  })

  test('fails start', async () => {
    await expect(runner.start(['no-such-program-of-ours']).ended).rejects.toBeInstanceOf(CommandMissing)
  })

  test('is looked for on the PATH that the command gets', async () => {
    await expect(runner.run(['true'], { env: { PATH: '/nowhere' } })).rejects.toBeInstanceOf(CommandMissing)
  })
})

describe.concurrent('a time-out', () => {
  test('ends the whole process group, grandchildren too', async () => {
    const failure = await failureOf(runner.try(sh('sleep 1000 & echo $!; wait'), { timeout: 1000 }))
    expect(failure.endedBy).toBe('timeout')
    expect(failure.message).toMatch(/did not end within 1\.0s/)
    await gone(Number(failure.result.stdout))
  })

  test('ends what ignores SIGTERM', async () => {
    const failure = await failureOf(runner.try(sh('trap "" TERM; echo $$; sleep 1000'), { timeout: 1000 }))
    expect(failure).toMatchObject({ endedBy: 'timeout', result: { code: 137 } })
    await gone(Number(failure.result.stdout))
  })

  test('lets a program end in its own way', async () => {
    const failure = await failureOf(
      runner.try(sh('trap "echo bye; exit 5" TERM; echo ready; sleep 1000 & wait'), { timeout: 1000 }),
    )
    expect(failure).toMatchObject({ endedBy: 'timeout', result: { code: 5, stdout: 'ready\nbye\n' } })
  })

  test('is not held up by one that left the group and keeps the pipes', async () => {
    const failure = await failureOf(runner.try(sh('echo $$; setsid sleep 60 & wait'), { timeout: 300 }))
    expect(failure.endedBy).toBe('timeout')
    expect(failure.message).toContain('did not end within 0.3s')
  })

  test('means nothing to a program that ends in time', async () => {
    expect(await runner.run(['true'], { timeout: 60_000 })).toMatchObject({ code: 0 })
  })
})

describe('an abort', () => {
  test('ends every command that runs', async () => {
    const cancel = new AbortController()
    const cancelled = createRunner({ env: ENV, signal: cancel.signal })
    let running = 0
    const onLine = (): void => {
      if (++running === 2) cancel.abort()
    }
    const commands = [1, 2].map(() => failureOf(cancelled.try(sh('sleep 1000 & echo $!; wait'), { onLine })))
    for (const { endedBy, message, result } of await Promise.all(commands)) {
      expect({ endedBy, code: result.code }).toEqual({ endedBy: 'abort', code: 143 })
      expect(message).toMatch(/was ended/)
      await gone(Number(result.stdout))
    }
  })

  test('fails every later command', async () => {
    const aborted = createRunner({ env: ENV, signal: AbortSignal.abort() })
    expect((await failureOf(aborted.run(['sleep', '1000']))).endedBy).toBe('abort')
    expect((await failureOf(aborted.start(['cat']).ended)).endedBy).toBe('abort')
  })

  test('means nothing to what has ended before', async () => {
    const cancel = new AbortController()
    const result = await createRunner({ env: ENV, signal: cancel.signal }).run(['echo', 'done'])
    cancel.abort()
    expect(result.stdout).toBe('done\n')
  })
})

describe('stdin', () => {
  test('is what was put in, and then ends', async () => {
    expect((await runner.run(['cat'], { input: 'grüße\n' })).stdout).toBe('grüße\n')
  })

  test('is empty where nothing was put in', async () => {
    expect((await runner.run(['cat'])).stdout).toBe('')
  })

  test('may be left unread', async () => {
    expect(await runner.run(['true'], { input: 'x'.repeat(1 << 20) })).toMatchObject({ code: 0 })
  })
})

describe('the lines that are seen as they come', () => {
  test('are whole, from both streams, the last one too', async () => {
    const lines: string[] = []
    await runner.run(sh('printf "one\\ntw"; printf "o\\r\\n\\nlast"'), { onLine: line => lines.push(line) })
    expect(lines).toEqual(['one', 'two', '', 'last'])
    await runner.run(sh('echo err >&2'), { onLine: line => lines.push(line) })
    expect(lines.at(-1)).toBe('err')
  })

  test('come while the program runs', async () => {
    // The program ends only when it is ended by what its line sets off.
    const running = runner.start(sh('echo now >&2; exec sleep 1000'), { onLine: () => running.end() })
    expect(await failureOf(running.ended)).toMatchObject({ endedBy: 'abort', result: { stderr: 'now\n' } })
  })
})

describe('open pipes', () => {
  test('go through a program', async () => {
    const running = runner.start(['tr', 'a-z', 'A-Z'])
    running.stdin.end('hello')
    expect(await text(running.stdout)).toBe('HELLO')
    expect(await running.ended).toEqual({ code: 0, stdout: '', stderr: '' })
  })

  test('go from one program to another, whatever the amount', async () => {
    const from = runner.start(['head', '-c', '20000000', '/dev/zero'])
    const to = runner.start(['wc', '-c'])
    const [, count] = await Promise.all([pipeline(from.stdout, to.stdin), text(to.stdout), from.ended, to.ended])
    expect(count.trim()).toBe('20000000')
  })

  test('a program that fails says why', async () => {
    const running = runner.start(sh('cat >/dev/null; echo full >&2; exit 2'))
    running.stdin.end('x')
    running.stdout.resume()
    expect((await failureOf(running.ended)).message).toMatch(/exit code 2: full$/)
  })

  test('a program may be ended', async () => {
    const running = runner.start(['cat'])
    running.stdout.resume()
    running.end()
    expect((await failureOf(running.ended)).endedBy).toBe('abort')
  })
})

test('commands see the variables of the runner, and their own over them', async () => {
  const own = createRunner({ env: { ...ENV, A: 'a', B: 'b', C: 'c' } })
  const { stdout } = await own.run(sh('echo $A $B $C $HOME'), { env: { B: undefined, C: 'own' } })
  expect(stdout).toBe('a own\n')
})

test('commands run where they are told to', async () => {
  expect((await runner.run(['pwd'], { cwd: '/' })).stdout).toBe('/\n')
})

test('arguments reach a program as they are', async () => {
  expect((await runner.run(['printf', '[%s]', '$HOME', '*', 'a b', '; true', ''])).stdout).toBe(
    '[$HOME][*][a b][; true][]',
  )
})

test('of a long output the end is kept', async () => {
  const { stdout } = await runner.run(sh('head -c 5000000 /dev/zero | tr "\\0" x; echo end'))
  expect(stdout.length).toBe(4 * 1024 * 1024)
  expect(stdout.slice(-5)).toBe('xend\n')
})

test('each command is told to debug with its code and duration', async () => {
  const told: string[] = []
  await createRunner({ env: ENV, debug: line => told.push(line) }).try(sh('exit 4'))
  expect(told).toEqual([expect.stringMatching(/^\$ sh -c exit 4 -> 4 \(\d+\.\ds\)$/)])
})

test("a failure's message holds the last lines only", async () => {
  const { message } = await failureOf(runner.run(sh('seq 100 >&2; exit 1')))
  expect(message.split('\n')).toHaveLength(12)
  expect(message).toMatch(/\n100$/)
})

test('what a failed program said, or how it ended', () => {
  expect(whatItSaid({ code: 1, stdout: '', stderr: 'a\nb\nc\n' }, 2)).toBe('b\nc')
  expect(whatItSaid({ code: 3, stdout: 'out', stderr: '\n' }, 2)).toBe('it said nothing, exit code 3')
  expect(whatItSaid({ code: 143, stdout: '', stderr: '' }, 2)).toBe('it said nothing, ended by SIGTERM from outside')
  expect(whatItSaid({ code: 137, stdout: '', stderr: '' }, 2)).toMatch(/ended by SIGKILL from outside, .*memory/)
})

test('lastLines', () => {
  expect(lastLines('a\nb\nc', 2)).toBe('b\nc')
  expect(lastLines('a', 2)).toBe('a')
})

async function failureOf(work: Promise<unknown>): Promise<CommandFailed> {
  const failure = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(failure).toBeInstanceOf(CommandFailed)
  return failure as CommandFailed
}

/** Whether a process is there and is no zombie, which in a container may never be reaped. */
/** A grandchild gets its signal when the command does, and ends in its own time: at once, but not before its parent. */
function gone(pid: number): Promise<void> {
  return vi.waitFor(() => expect(isRunning(pid)).toBe(false))
}

function isRunning(pid: number): boolean {
  expect(pid).toBeGreaterThan(1)
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return false
  }
}

test('to end a command that has ended is no second end of it', async () => {
  const debugged: string[] = []
  const running = createRunner({ env: ENV, debug: line => void debugged.push(line) }).start(['true'])
  running.stdout.resume()
  await running.ended
  vi.useFakeTimers()
  running.end()
  vi.advanceTimersByTime(60_000)
  vi.useRealTimers()
  expect(debugged).toHaveLength(1)
})
