import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { chooseUses } from '../../src/host/choose-use.ts'
import { readCommandLine } from '../../src/host/command-line.ts'
import type { Host } from '../../src/host/host.ts'
import { paint } from '../../src/host/paint.ts'
import { usesByHand } from '../../src/host/remembered.ts'
import { createTerminalHost } from '../../src/host/terminal.ts'
import type { Given } from '../../src/lib/given.ts'
import { validName } from '../../src/plan.ts'
import { saveState } from '../../src/state.ts'
import { aPlan } from '../builders.ts'

let base: string
let env: Record<string, string | undefined>
let log: string[]
let stdout: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'terminal-'))
  vi.stubEnv('TMPDIR', base)
  env = { HOME: base, USER: 'me' }
  log = []
  stdout = ''
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true })
})

function open(...argv: string[]): Host {
  return createTerminalHost(
    env,
    readCommandLine(argv),
    line => log.push(line),
    text => {
      stdout += text
    },
    paint(env, false),
  )
}

/** What pre does first: it notes the use, and saving its state makes the folder. */
async function up(use: string): Promise<Host> {
  const host = open('up')
  await host.remember(use)
  mkdirSync(join(host.folder, use))
  writeFileSync(join(host.folder, use, 'state.json'), '{}')
  return host
}

test('the folder is in the user’s state, private', () => {
  const { folder } = open('up')
  expect(folder).toBe(join(base, '.local/state/kind-in-dind'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('without a home that can be written it is among the temporary files', () => {
  env['HOME'] = '/dev/null'
  expect(open('up').folder).toBe(join(base, `kind-in-dind-${process.getuid?.()}`, 'terminal'))
})

test('a second up is the same job: it must not take the first one’s cluster for a leftover', () => {
  expect(open('up').identity).toEqual(open('up').identity)
})

test("in a job a cluster is that job's, whose post finds it", async () => {
  const job = { owner: 'agent-1', job: 'job-1' }
  env['KIND_IN_DIND_FOLDER'] = base
  const started = (name: string, identity = job): string => {
    const plan = aPlan({ options: { name }, identity, folder: base })
    saveState({ plan, stage: 'ready' })
    return basename(plan.folder)
  }
  started('first')
  const host = open('up')
  expect(host.identity).toMatchObject(job)
  const byHand = started('second')
  await host.remember(byHand)
  expect(usesByHand(base, 'job-1')).toEqual([byHand])
  expect(usesByHand(base, 'job-2')).toEqual([])
})

test('down takes the only cluster there is, and asks which where there are several', async () => {
  expect(await open('down').uses()).toEqual([])
  await up('one')
  expect(await open('down').uses()).toEqual(['one'])
  await up('two')
  await expect(open('down').uses()).rejects.toThrow(/^which cluster\? there are: one, two; say which with --name one$/)
})

test.each<[string, Given, string | undefined, readonly string[]]>([
  ["this shell's comes before the others", undefined, 'one', ['one']],
  ['a name comes before this shell', 'two', 'one', ['two']],
])('down: %s', (_, named, ofShell, chosen) => {
  expect(chooseUses(['two', 'one'], named, ofShell)).toEqual(chosen)
})

test("down takes the only one where this shell's is gone", () => {
  expect(chooseUses(['two'], undefined, 'one')).toEqual(['two'])
})

test('down takes what --name names, also as it was given to up', async () => {
  await up('one')
  await up(validName('My_App'))
  await up('two')
  expect(await open('down', '--name', 'one').uses()).toEqual(['one'])
  expect(await open('down', '--name', 'My_App').uses()).toEqual([validName('My_App')])
})

test('down does not see what was removed already', async () => {
  const host = await up('one')
  rmSync(join(host.folder, 'one'), { recursive: true })
  expect(await open('down').uses()).toEqual([])
})

test('down with a name that nothing has is refused, and says what there is', async () => {
  await expect(open('down', '--name', 'two').uses()).rejects.toThrow(
    '--name: no cluster of yours is called two; there is none',
  )
  await up('one')
  await expect(open('down', '--name', 'two').uses()).rejects.toThrow(
    '--name: no cluster of yours is called two; there are: one',
  )
})

test('after its own failure up removes its own use only', async () => {
  await up('one')
  const failed = await up('two')
  expect(await failed.uses()).toEqual(['two'])
})

test('stdout is for the shell alone, the log goes beside it', async () => {
  const host = open('up')
  await host.group('Create', async () => host.info('working'))
  host.warning('careful')
  host.error('broken')
  host.debug('hidden')
  expect(stdout).toBe('')
  await host.exportVariables({ KUBECONFIG: '/k' })
  await host.addPath('/tools')
  expect(stdout).toBe(`export KUBECONFIG='/k'\nexport PATH='/tools':"$PATH"\n`)
  expect(log).toEqual([
    'Create ...',
    '  working',
    expect.stringMatching(/^ {2}done in \d+\.\ds$/),
    'Warning: careful',
    'Error: broken',
  ])
})

test('KIND_IN_DIND_DEBUG=1 shows debug lines', () => {
  env['KIND_IN_DIND_DEBUG'] = '1'
  open('up').debug('shown')
  expect(log).toEqual(['shown'])
})
