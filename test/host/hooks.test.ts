import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'

/** The hooks are tried as the agent runs them: sourced by a wrapper that looks at the environment before and after. */
const WRAPPER = `#!/usr/bin/env bash
env -0 > before
. "$HOOK"
export BUILDKITE_HOOK_EXIT_STATUS=$?
env -0 > after
printf %s "$-" > flags
trap > traps
exit $BUILDKITE_HOOK_EXIT_STATUS
`

let base: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'hooks-'))
  for (const folder of ['hooks', 'dist', 'tmp', 'bin']) mkdirSync(join(base, folder))
  for (const hook of ['pre-command', 'pre-exit']) {
    copyFileSync(new URL(`../../hooks/${hook}`, import.meta.url), join(base, 'hooks', hook))
  }
  writeFileSync(join(base, 'package.json'), '{"type":"module"}')
  writeFileSync(join(base, 'wrapper'), WRAPPER)
  chmodSync(join(base, 'wrapper'), 0o700)
})
afterEach(() => rmSync(base, { recursive: true }))

const environment = (hook: string, path = `${dirname(process.execPath)}:/usr/bin:/bin`): NodeJS.ProcessEnv => ({
  HOOK: join(base, 'hooks', hook),
  TMPDIR: join(base, 'tmp'),
  PATH: path,
})

function run(hook: string, path?: string): { status: number | null; output: string } {
  const { status, stdout, stderr } = spawnSync(join(base, 'wrapper'), {
    cwd: base,
    env: environment(hook, path),
    encoding: 'utf8',
  })
  return { status, output: stdout + stderr }
}

/** The variables that the hook added or changed, as the agent would see them. */
function changes(): Record<string, string> {
  const read = (file: string): string[] => readFileSync(join(base, file), 'utf8').split('\0').filter(Boolean)
  const before = new Set(read('before'))
  const changed = read('after').filter(line => !before.has(line) && !/^(_|BUILDKITE_HOOK_EXIT_STATUS)=/.test(line))
  return Object.fromEntries(changed.map(line => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]))
}

const bundle = (name: 'main' | 'post', code: string): void => writeFileSync(join(base, 'dist', `${name}.js`), code)
const exporting = `import { appendFileSync } from 'node:fs'
appendFileSync(process.env.KIND_IN_DIND_EXPORTS, "export KUBECONFIG='/it'\\\\''s here'\\n")
`

test('pre-command hands over what the program exports, and nothing else', () => {
  bundle('main', exporting)
  expect(run('pre-command').status).toBe(0)
  expect(changes()).toEqual({ KUBECONFIG: "/it's here" })
})

test('pre-command leaves the wrapper’s shell as it was, and no file', () => {
  bundle('main', exporting)
  run('pre-command')
  const plain = execFileSync('bash', ['-c', 'printf %s "$-"'], { encoding: 'utf8' })
  expect(readFileSync(join(base, 'flags'), 'utf8').replace('c', '')).toBe(plain.replace('c', ''))
  expect(readFileSync(join(base, 'traps'), 'utf8')).toBe('')
  expect(readdirSync(join(base, 'tmp'))).toEqual([])
})

test('pre-command’s failure is the program’s, and exports nothing', () => {
  bundle('main', `${exporting}process.exit(7)`)
  expect(run('pre-command').status).toBe(7)
  expect(changes()).toEqual({})
  expect(readdirSync(join(base, 'tmp'))).toEqual([])
})

test('the hooks tell the program that Buildkite runs it', () => {
  bundle('main', 'console.log("host", process.env.KIND_IN_DIND_CI)')
  bundle('post', 'console.log("host", process.env.KIND_IN_DIND_CI)')
  expect(run('pre-command').output).toContain('host buildkite')
  expect(run('pre-exit').output).toContain('host buildkite')
})

test.each([
  ['no Node', undefined, 'found: none'],
  ['an old Node', 'v18.20.4', 'found: 18.20.4'],
])('with %s pre-command says in one line what is needed, and pre-exit is silent', (_, version, found) => {
  bundle('main', 'console.log("runs")')
  bundle('post', 'console.log("runs")')
  for (const tool of ['bash', 'env', 'dirname', 'mktemp', 'rm']) {
    const path = execFileSync('bash', ['-c', `command -v ${tool}`], { encoding: 'utf8' }).trim()
    writeFileSync(join(base, 'bin', tool), `#!/bin/sh\nexec ${path} "$@"\n`, { mode: 0o700 })
  }
  if (version) writeFileSync(join(base, 'bin/node'), `#!/bin/sh\necho ${version}\n`, { mode: 0o700 })
  const { status, output } = run('pre-command', join(base, 'bin'))
  expect(status).toBe(1)
  expect(output).toMatch(/^Error: kind-in-dind needs Node 20 or newer.*\n$/)
  expect(output).toContain(found)
  expect(run('pre-exit', join(base, 'bin'))).toEqual({ status: 0, output: '' })
})

test('without a temporary folder pre-command names TMPDIR', () => {
  rmSync(join(base, 'tmp'), { recursive: true })
  bundle('main', exporting)
  const { status, output } = run('pre-command')
  expect(status).toBe(1)
  expect(output).toContain('TMPDIR must name a folder')
})

test('pre-exit is 0 whatever the program does', () => {
  bundle('post', 'console.log("post runs"); process.exit(3)')
  expect(run('pre-exit')).toEqual({ status: 0, output: 'post runs\n' })
  bundle('post', 'process.kill(process.pid, "SIGKILL")')
  expect(run('pre-exit').status).toBe(0)
})

/** Runs a hook in a process group of its own, as the agent does, and signals the group when the program is up. */
async function cancelled(hook: string, signal: NodeJS.Signals): Promise<{ status: number | null; output: string }> {
  const child = spawn(join(base, 'wrapper'), { cwd: base, env: environment(hook), detached: true })
  let output = ''
  let sent = false
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
    if (sent || !output.includes('up') || child.pid === undefined) return
    sent = true
    process.kill(-child.pid, signal)
  })
  const status = await new Promise<number | null>(resolve => child.once('close', resolve))
  return { status, output }
}

const waiting = (code: number): string => `
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => setTimeout(() => {
  console.log('cleaned')
  process.exit(${code})
}, 50))
console.log('up')
setInterval(() => {}, 1000)
`

test('a cancelled pre-command lets the program end what it started, then fails', async () => {
  bundle('main', waiting(143))
  expect(await cancelled('pre-command', 'SIGTERM')).toEqual({ status: 143, output: 'up\ncleaned\n' })
  expect(readdirSync(join(base, 'tmp'))).toEqual([])
})

test('a cancelled pre-command fails even if the program ended well', async () => {
  bundle('main', waiting(0))
  expect((await cancelled('pre-command', 'SIGINT')).status).toBe(130)
})

test('a cancelled pre-exit finishes', async () => {
  bundle('post', waiting(0))
  expect(await cancelled('pre-exit', 'SIGTERM')).toEqual({ status: 0, output: 'up\ncleaned\n' })
  expect(existsSync(join(base, 'after'))).toBe(true)
})
