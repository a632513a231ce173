import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Fault, type ReleasePage, startReleasePage } from '../release-page.ts'

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
  for (const hook of ['pre-command', 'pre-exit', 'find-node']) {
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

describe('without a Node that is new enough', () => {
  const TOOLS = ['bash', 'env', 'dirname', 'mktemp', 'rm', 'uname', 'mkdir', 'chmod', 'id', 'sed', 'cut', 'head', 'mv']
  const UNPACK = ['tar', 'gzip', 'sha256sum']
  const VERSION = 'v24.11.1'
  const platform = `linux-${process.arch}`
  const path = `/${VERSION}/node-${VERSION}-${platform}.tar.gz`
  let page: ReleasePage

  beforeEach(async () => {
    // A Node as far as it is asked for its version, in an archive like Node's own; its checksum takes the place of that one's.
    const folder = join(base, `node-${VERSION}-${platform}/bin`)
    mkdirSync(folder, { recursive: true })
    const fake = `#!/bin/sh\n[ "$1" != --version ] || { echo ${VERSION}; exit; }\nexec ${process.execPath} "$@"\n`
    writeFileSync(join(folder, 'node'), fake, { mode: 0o755 })
    execFileSync('tar', ['-czf', 'archive', `node-${VERSION}-${platform}`], { cwd: base })
    const archive = readFileSync(join(base, 'archive'))
    const program = readFileSync(join(base, 'hooks/find-node'), 'utf8')
    const sha256 = createHash('sha256').update(archive).digest('hex')
    writeFileSync(join(base, 'hooks/find-node'), program.replace(/[0-9a-f]{64}/g, sha256))
    page = await startReleasePage({ files: { [path]: archive } })
  })
  afterEach(() => page.close())

  function provide(...tools: readonly string[]): void {
    for (const tool of [...TOOLS, ...tools]) {
      const file = execFileSync('bash', ['-c', `type -P ${tool}`], { encoding: 'utf8' }).trim()
      writeFileSync(join(base, 'bin', tool), `#!/bin/sh\nexec ${file} "$@"\n`, { mode: 0o700 })
    }
  }

  /** Runs a hook as `run` does, and lets the page answer meanwhile. */
  async function hook(name: string, mirror = page.url): Promise<{ status: number | null; output: string }> {
    const child = spawn(join(base, 'wrapper'), {
      cwd: base,
      env: {
        ...environment(name, join(base, 'bin')),
        HOME: join(base, 'tmp'),
        BUILDKITE_PLUGIN_CONFIGURATION: JSON.stringify({
          'download-url': [
            'kind=http://no.example/{version}',
            `node=${mirror}/v{version}/node-{version}-{os}-{arch}.tar.gz`,
          ],
        }),
      },
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    }
    const status = await new Promise<number | null>(resolve => child.once('close', resolve))
    return { status, output }
  }

  /** What is kept for later jobs. */
  const kept = (): string[] => readdirSync(join(base, 'tmp/.cache/kind-in-dind')).filter(name => !name.startsWith('.'))

  test.each(['curl', 'wget'])(
    'one is fetched by %s from the mirror, once, and serves the hooks of all jobs',
    async by => {
      provide(...UNPACK, by)
      bundle('main', exporting)
      bundle('post', 'console.log("post runs")')
      const first = await hook('pre-command')
      expect(first).toEqual({
        status: 0,
        output: expect.stringMatching(/^Node v24\.11\.1 from http.*, checksum verified; .*\n$/),
      })
      expect(changes()).toEqual({ KUBECONFIG: "/it's here" })
      expect(await hook('pre-command')).toEqual({ status: 0, output: '' })
      expect(await hook('pre-exit')).toEqual({ status: 0, output: 'post runs\n' })
      expect(page.requests).toEqual([path])
      expect(kept()).toEqual([`node-${VERSION}-${platform}`])
    },
  )

  test.each([
    [
      'another program',
      (file: string) => writeFileSync(file, '#!/bin/sh\ntouch "$(dirname "$0")/ran"; echo v24.11.1\n'),
    ],
    ['half of it', (file: string) => truncateSync(file, 20)],
    [
      'one with no word of when it was verified',
      (file: string) => rmSync(join(dirname(file), `.${basename(file)}.sha256`)),
    ],
  ])('where the cache has %s, that is not run: it is fetched anew', async (_, damage) => {
    provide(...UNPACK, 'curl')
    bundle('main', 'console.log("runs")')
    bundle('post', 'console.log("post runs")')
    await hook('pre-command')
    const cache = join(base, 'tmp/.cache/kind-in-dind')
    damage(join(cache, `node-${VERSION}-${platform}`))
    expect(await hook('pre-exit')).toEqual({ status: 0, output: '' })
    expect((await hook('pre-command')).output).toMatch(/^Node v24\.11\.1 from http.*\nruns\n$/)
    expect(await hook('pre-exit')).toEqual({ status: 0, output: 'post runs\n' })
    expect(page.requests).toEqual([path, path])
    expect(existsSync(join(cache, 'ran'))).toBe(false)
  })

  test('of jobs that start at the same time one fetches it', async () => {
    provide(...UNPACK, 'curl', 'flock')
    bundle('main', '')
    const jobs = await Promise.all(['pre-command', 'pre-command', 'pre-command'].map(name => hook(name)))
    expect(jobs.map(({ status }) => status)).toEqual([0, 0, 0])
    expect(page.requests).toEqual([path])
  })

  test.each<[string, Fault, RegExp]>([
    [
      'is not the one that is pinned',
      { kind: 'short' },
      /sent is not Node v24\.11\.1 but a file with the sha256 [0-9a-f]{64}: install it/,
    ],
    ['is a page for people', { kind: 'html' }, /sent is not Node v24\.11\.1 but a file with the sha256 /],
    [
      'is not there',
      { kind: 'status', status: 404 },
      /cannot be fetched \(curl: .*404.*\): install it where the job runs, or name a mirror: /,
    ],
  ])('an archive that %s is refused, and nothing of it is kept', async (_, fault, sentence) => {
    provide(...UNPACK, 'curl')
    bundle('main', 'console.log("runs")')
    page.fault(path, fault)
    const { status, output } = await hook('pre-command')
    expect(status).toBe(1)
    expect(output).toMatch(/^Error: kind-in-dind needs Node 20 or newer on PATH, found: none; .*\n$/)
    expect(output).toMatch(sentence)
    expect(kept()).toEqual([])
    expect(readdirSync(join(base, 'tmp'))).toEqual(['.cache'])
  })

  test('where only musl is, as on Alpine, a sentence says what to install, and nothing is fetched', async () => {
    provide(...UNPACK, 'curl')
    bundle('main', 'console.log("runs")')
    // This machine's own libraries are not looked at, but those of a place made for it.
    const finder = join(base, 'hooks/find-node')
    writeFileSync(finder, readFileSync(finder, 'utf8').replaceAll("'/lib", `'${base}/lib`))
    mkdirSync(join(base, 'lib'))
    writeFileSync(join(base, 'lib/ld-musl-x86_64.so.1'), '')
    const { status, output } = await hook('pre-command')
    expect(status).toBe(1)
    expect(output).toBe(
      'Error: kind-in-dind needs Node 20 or newer on PATH, found: none; there is none to fetch for Alpine: install it there (apk add nodejs)\n',
    )
    expect(page.requests).toEqual([])
  })

  test("a mirror's password is not shown", async () => {
    provide(...UNPACK, 'curl')
    bundle('main', '')
    const mirror = page.url.replace('//', '//me:s3cret@')
    expect((await hook('pre-command', mirror)).output).not.toContain('s3cret')
    page.fault(path, { kind: 'status', status: 403 })
    rmSync(join(base, 'tmp/.cache'), { recursive: true })
    const { output } = await hook('pre-command', mirror)
    expect(output).toContain('cannot be fetched')
    expect(output).not.toContain('s3cret')
  })

  test.each([
    ['no Node', undefined, 'found: none'],
    ['an old Node', 'v18.20.4', 'found: 18.20.4'],
  ])(
    'with %s and nothing to fetch one with, a sentence says what to install, and pre-exit is silent',
    async (_, version, found) => {
      provide(...UNPACK)
      bundle('main', 'console.log("runs")')
      bundle('post', 'console.log("runs")')
      if (version) writeFileSync(join(base, 'bin/node'), `#!/bin/sh\necho ${version}\n`, { mode: 0o700 })
      const { status, output } = await hook('pre-command')
      expect(status).toBe(1)
      expect(output).toMatch(
        /^Error: kind-in-dind needs Node 20 or newer.* without curl or wget: install Node, or one of these, .*\n$/,
      )
      expect(output).toContain(found)
      expect(await hook('pre-exit')).toEqual({ status: 0, output: '' })
    },
  )
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
