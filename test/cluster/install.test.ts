import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { build } from 'vite'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Patience } from '../../src/cluster/download.ts'
import { installKind, installKubectl } from '../../src/cluster/install.ts'
import { KIND } from '../../src/cluster/kind-releases.ts'
import { isOursAlone } from '../../src/cluster/obtain.ts'
import type { Program, Surroundings } from '../../src/cluster/program.ts'
import { Problem } from '../../src/lib/problem.ts'
import { createRunner } from '../../src/lib/run.ts'
import type { KindVersion, KubectlVersion } from '../../src/options.ts'
import { kindPath, kubectlPath, type ReleasePage, startReleasePage } from '../release-page.ts'

const BINARY = script(`kind ${KIND} go1.26.0 linux/amd64`)
const SHA256 = createHash('sha256').update(BINARY).digest('hex')
const KUBECTL = script('{"clientVersion": {"gitVersion": "v1.34.0"}}')
const PROGRAM = kindPath(KIND)
const CHECKSUM = `${PROGRAM}.sha256sum`

let page: ReleasePage
let root: string
let lines: string[]

beforeEach(async () => {
  page = await startReleasePage({
    files: { [PROGRAM]: BINARY, [kindPath('v0.32.0')]: script('kind v0.32.0'), [kubectlPath('v1.34.0')]: KUBECTL },
    latest: 'v0.32.0',
  })
  root = await mkdtemp(join(tmpdir(), 'install-'))
  lines = []
  vi.stubEnv('RUNNER_TOOL_CACHE', join(root, 'cache'))
  await mkdir(join(root, 'bin'))
})

afterEach(async () => {
  await page.close()
  vi.unstubAllEnvs()
  await rm(root, { recursive: true, force: true })
})

function script(says: string): string {
  return `#!/bin/sh\necho '${says}'\n`
}

function surroundings(over: Partial<Surroundings> = {}): Surroundings {
  return {
    runner: createRunner({ env: { PATH: join(root, 'bin') } }),
    log: {
      info: line => void lines.push(`info: ${line}`),
      debug: line => void lines.push(`debug: ${line}`),
      warning: line => void lines.push(`warning: ${line}`),
    },
    now: Date.now,
    platform: { os: 'linux', arch: 'x64' },
    cacheFolder: join(root, 'cache'),
    folder: join(root, 'job'),
    patience: patience(),
    ...over,
  }
}

/** No pauses between attempts, and as long as a loaded machine may need for all else. */
function patience(over: Partial<Patience> = {}): Patience {
  return { limit: 60_000, stall: 60_000, pauses: [0, 0], ...over }
}

/** Puts a program on the PATH that jobs here have. */
async function onPath(name: string, content: string): Promise<void> {
  await writeFile(join(root, 'bin', name), content)
  await chmod(join(root, 'bin', name), 0o755)
}

function kind(version: KindVersion = { kind: 'pinned' }, over: Partial<Surroundings> = {}): Promise<Program> {
  return installKind({ version, url: page.templates.kind, ...surroundings(over) })
}

function kubectl(version: KubectlVersion, kubernetesVersion?: string): Promise<Program | undefined> {
  return installKubectl({ version, kubernetesVersion, url: page.templates.kubectl, ...surroundings() })
}

/** The message of the Problem that work ends with. */
async function problem(work: Promise<unknown>): Promise<string> {
  const thrown = await work.then(
    () => undefined,
    error => error as unknown,
  )
  expect(thrown).toBeInstanceOf(Problem)
  return (thrown as Problem).message
}

async function expectNothingKept(): Promise<void> {
  const left = existsSync(root) ? await readdir(root, { recursive: true, withFileTypes: true }) : []
  expect(left.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))).toEqual([])
}

const waited = (): string[] => lines.filter(line => !line.startsWith('debug:'))

describe('kind from a release page', () => {
  test('is verified, cached, executable and said in one line', async () => {
    const { path, version, folder } = await kind()
    expect(version).toBe(KIND)
    expect(path).toBe(join(folder ?? '', 'kind'))
    expect(path.startsWith(join(root, 'cache'))).toBe(true)
    expect(await readFile(path, 'utf8')).toBe(BINARY)
    expect((await stat(path)).mode & 0o777).toBe(0o755)
    expect((await surroundings().runner.run([path, 'version'], { env: { PATH: '/usr/bin:/bin' } })).stdout).toContain(
      KIND,
    )
    expect(page.requests.toSorted()).toEqual([PROGRAM, CHECKSUM])
    expect(waited()).toEqual([
      expect.stringMatching(`^info: kind ${KIND} from ${page.url}${PROGRAM}: .* MB in .*s, checksum verified$`),
    ])
    expect(await readdir(join(root, 'job'))).toEqual([])
  })

  test('is taken from the cache the next time, without a word to the page', async () => {
    const first = await kind()
    await page.close()
    expect(await kind()).toEqual(first)
  })

  test('what tool-cache says is in the debug log', async () => {
    await kind()
    expect(lines).toContainEqual(`debug: Downloading ${page.url}${PROGRAM}`)
    expect(lines).toContainEqual('debug: finished caching tool')
  })

  test('another release is taken by its version', async () => {
    const { path, version } = await kind({ kind: 'release', version: 'v0.32.0', sha256: undefined })
    expect(version).toBe('v0.32.0')
    expect(await readFile(path, 'utf8')).toContain('v0.32.0')
  })

  test('the architecture is the step’s', async () => {
    const said = await problem(kind({ kind: 'pinned' }, { platform: { os: 'linux', arch: 'arm64' } }))
    expect(page.requests).toContain(kindPath(KIND, 'linux-arm64'))
    expect(said).toContain('for linux arm64')
  })

  test('a system that kind is not installed on is refused before anything is asked for', async () => {
    expect(await problem(kind({ kind: 'pinned' }, { platform: { os: 'win32', arch: 'x64' } }))).toContain('win32 x64')
    expect(page.requests).toEqual([])
  })
})

describe('what must not be kept', () => {
  test.each([
    [
      'a wrong checksum',
      CHECKSUM,
      { kind: 'wrong-checksum' },
      `${'f'.repeat(64)}) but a file of ${BINARY.length} bytes`,
    ],
    ['an HTML page', PROGRAM, { kind: 'html' }, `(sha256 ${SHA256}) but an HTML page`],
    ['a short file', PROGRAM, { kind: 'short' }, `but a file of ${Math.floor(BINARY.length / 2)} bytes`],
    ['an HTML page as checksum file', CHECKSUM, { kind: 'html' }, 'is no checksum file but an HTML page'],
    ['no checksum file', CHECKSUM, { kind: 'status', status: 404 }, `its checksum file URL${CHECKSUM} answered 404`],
    [
      'no such release',
      PROGRAM,
      { kind: 'status', status: 404 },
      `no release kind ${KIND} for linux amd64: URL${PROGRAM} answered 404`,
    ],
    ['no permission', PROGRAM, { kind: 'status', status: 403 }, `URL${PROGRAM} answered 403`],
    ['a broken page', PROGRAM, { kind: 'status', status: 503 }, `URL${PROGRAM} answered 503`],
    ['a broken connection', PROGRAM, { kind: 'cut' }, `URL${PROGRAM} broke the connection off`],
  ] as const)('%s', async (_, path, fault, found) => {
    page.fault(path, fault)
    const said = await problem(kind())
    expect(said).toContain(found.replace('URL', page.url))
    expect(said).toContain('download-url')
    expect(said).not.toContain('\n')
    await expectNothingKept()
    page.fault(path, undefined)
    expect(await readFile((await kind()).path, 'utf8')).toBe(BINARY)
  })

  test.each([
    ['half-way', 'stall'],
    ['before its answer', 'silence'],
  ] as const)('a server that stalls %s is given up, after three attempts', async (_, fault) => {
    page.fault(PROGRAM, { kind: fault })
    const said = await problem(kind({ kind: 'pinned' }, { patience: patience({ stall: 800 }) }))
    expect(said).toContain(`${page.url}${PROGRAM} sent nothing for 0.8s; try again`)
    expect(page.count(PROGRAM)).toBe(3)
    await expectNothingKept()
  })

  test('one that sends for ever ends at the limit of all', async () => {
    page.fault(PROGRAM, { kind: 'drip' })
    const said = await problem(kind({ kind: 'pinned' }, { patience: patience({ limit: 1000 }) }))
    expect(said).toMatch(/ had not sent it all after (1\.0|0\.\d)s; try again/)
    await expectNothingKept()
  })

  test('a query, which may be secret, is in no message', async () => {
    page.fault(PROGRAM, { kind: 'silence' })
    const url = `${page.templates.kind}?token=s3cret`
    const said = await problem(
      installKind({ version: { kind: 'pinned' }, url, ...surroundings({ patience: patience({ stall: 200 }) }) }),
    )
    expect([said, ...lines].join('\n')).not.toContain('s3cret')
  })

  test('a page that nobody serves is named', async () => {
    await page.close()
    const said = await problem(kind())
    expect(said).toBe(
      `download-url: kind ${KIND} cannot be downloaded: ${page.url}${PROGRAM} refuses connections (ECONNREFUSED); try again, name a mirror as download-url, or use the kind that is on PATH (kind-version: installed)`,
    )
  })
})

test('a page that fails twice is asked a third time, and the log says why', async () => {
  page.fault(PROGRAM, { kind: 'status', status: 500, times: 2 })
  await kind()
  expect(page.count(PROGRAM)).toBe(3)
  expect(waited().slice(0, 2)).toEqual(
    [1, 2].map(() => `info: kind ${KIND}: ${page.url}${PROGRAM} answered 500; trying again in 0.0s`),
  )
})

describe('a pinned sha256', () => {
  test('takes the place of the checksum file', async () => {
    page.fault(CHECKSUM, { kind: 'status', status: 404 })
    const { path } = await kind({ kind: 'release', version: KIND, sha256: SHA256 })
    expect(await readFile(path, 'utf8')).toBe(BINARY)
    expect(page.requests).toEqual([PROGRAM])
  })

  test('that differs is a failure which names the option, whatever the checksum file says', async () => {
    const said = await problem(kind({ kind: 'release', version: KIND, sha256: 'a'.repeat(64) }))
    expect(said).toContain(`not what kind-version pins (sha256 ${'a'.repeat(64)})`)
    await expectNothingKept()
  })

  test('that differs from the cached one is asked for at the page, and the cached one stays', async () => {
    const { path } = await kind()
    await problem(kind({ kind: 'release', version: KIND, sha256: 'a'.repeat(64) }))
    expect(await readFile(path, 'utf8')).toBe(BINARY)
    expect(page.count(PROGRAM)).toBe(2)
  })
})

describe('the cache', () => {
  test.each([
    ['a truncated file', (path: string) => truncate(path, 5)],
    ['another file', (path: string) => writeFile(path, script('something else'))],
    ['no file', (path: string) => rm(path)],
    ['no checksum beside the file', (path: string) => rm(`${path}.sha256`)],
  ])('with %s in it is filled again, said in one line', async (_, damage) => {
    const first = await kind()
    await damage(first.path)
    lines = []
    expect(await kind()).toEqual(first)
    expect(await readFile(first.path, 'utf8')).toBe(BINARY)
    expect(page.count(PROGRAM)).toBe(2)
    expect(waited()[0]).toBe(`info: the cached kind ${KIND} is not the file that was cached; downloading it again`)
    expect(waited()).toHaveLength(2)
  })

  test.each([
    ['the program', (path: string) => chmod(path, 0o757)],
    ['its checksum', (path: string) => chmod(`${path}.sha256`, 0o646)],
    ['their folder', (path: string) => chmod(dirname(path), 0o777)],
  ])('where every user can write %s is filled again, said in one line', async (_, open) => {
    const first = await kind()
    await open(first.path)
    lines = []
    expect(await kind()).toEqual(first)
    expect(page.count(PROGRAM)).toBe(2)
    expect(waited()[0]).toMatch(
      /^info: the cached kind \S+ can be written by another user, or is one's; downloading it again$/,
    )
    expect(await kind()).toEqual(first)
    expect(page.count(PROGRAM)).toBe(2)
  })

  test.each([
    ["this user's", { uid: 1001, mode: 0o100755 }, 1001, true],
    ["this user's, and its group's to write", { uid: 1001, mode: 0o100775 }, 1001, true],
    ["root's", { uid: 0, mode: 0o100755 }, 1001, true],
    ["another user's", { uid: 1002, mode: 0o100755 }, 1001, false],
    ["another user's, for root", { uid: 1001, mode: 0o100755 }, 0, false],
    ["this user's, and everybody's to write", { uid: 1001, mode: 0o100757 }, 1001, false],
  ])('what is %s in it is trusted or not', (_, stats, user, trusted) => {
    expect(isOursAlone(stats, user)).toBe(trusted)
  })

  test('that cannot be written is said, and the job has its own kind, once', async () => {
    await writeFile(join(root, 'cache'), 'a file, not a folder')
    const first = await kind()
    expect(first.path.startsWith(join(root, 'job'))).toBe(true)
    expect((await stat(first.path)).mode & 0o777).toBe(0o755)
    expect(waited()[0]).toContain('the tool cache cannot be written')
    expect(await kind()).toEqual(first)
    expect(page.count(PROGRAM)).toBe(1)
  })

  test('that the host does not have is done without', async () => {
    const { path } = await kind({ kind: 'pinned' }, { cacheFolder: undefined })
    expect(path.startsWith(join(root, 'job'))).toBe(true)
  })

  test('is not locked by a job that died', async () => {
    const lock = lockOf((await kind()).path)
    await rm(join(root, 'cache'), { recursive: true })
    await mkdir(lock, { recursive: true })
    const longAgo = new Date(Date.now() - 60_000)
    await utimes(lock, longAgo, longAgo)
    await kind()
    expect(existsSync(lock)).toBe(false)
  })

  // One millisecond is over before the first attempt, as more may be on a machine under load.
  test.each([1, 200])('locked for longer than the limit of %i ms is a failure that names the lock', async limit => {
    const lock = lockOf((await kind()).path)
    await rm(join(root, 'cache'), { recursive: true })
    await mkdir(lock, { recursive: true })
    const said = await problem(kind({ kind: 'pinned' }, { patience: patience({ limit }) }))
    expect(said).toMatch(new RegExp(`another job has been installing kind ${KIND} for \\d+\\.\\ds;`))
    expect(said).toContain(lock)
    expect(waited()).toContain(`info: waiting for another job that installs kind ${KIND}`)
  })

  test('is filled by one of eight jobs that start at once', { timeout: 120_000 }, async () => {
    const worker = await bundled('install-worker.ts')
    const runner = createRunner({ env: process.env })
    const jobs = await Promise.all(
      Array.from({ length: 8 }, (_, job) =>
        runner.run([process.execPath, worker, page.templates.kind, join(root, `job${job}`)]),
      ),
    )
    // Parsing it as it is also tells that nothing else, such as tool-cache's `::debug::` lines, is on stdout.
    const paths = jobs.map(job => (JSON.parse(job.stdout) as { path: string }).path)
    expect(new Set(paths).size).toBe(1)
    expect(await readFile(paths[0] ?? '', 'utf8')).toBe(BINARY)
    expect(page.count(PROGRAM)).toBe(1)
    expect(page.count(CHECKSUM)).toBe(1)
    expect(existsSync(lockOf(paths[0] ?? ''))).toBe(false)
  })
})

/** The lock of a cached program: CACHE/TOOL/VERSION/ARCH/kind is locked by CACHE/TOOL/.vVERSION-ARCH.lock. */
function lockOf(path: string): string {
  return join(dirname(path), '..', '..', `.${KIND}-amd64.lock`)
}

/** Bundles a worker, since Node 20 runs no TypeScript. */
async function bundled(name: string): Promise<string> {
  const outDir = join(root, 'bundle')
  await build({
    configFile: false,
    logLevel: 'silent',
    ssr: { noExternal: true },
    build: {
      ssr: join(import.meta.dirname, name),
      outDir,
      target: 'node20',
      rolldownOptions: { output: { entryFileNames: 'worker.mjs' } },
    },
  })
  return join(outDir, 'worker.mjs')
}

describe('latest', () => {
  test('is what the page says', async () => {
    expect((await kind({ kind: 'latest' })).version).toBe('v0.32.0')
    expect(page.requests.slice(0, 2)).toEqual(['/latest', '/releases/tag/v0.32.0'])
    expect(waited().filter(line => line.startsWith('warning:'))).toEqual([])
  })

  test.each([
    ['is not there', { kind: 'status', status: 404 }, 'answered 404'],
    ['fails', { kind: 'status', status: 500 }, 'answered 500'],
    ['is a page for people', { kind: 'html' }, 'names no release but is an HTML page'],
  ] as const)('falls back to the pinned release where the page %s, and says so', async (_, fault, found) => {
    page.fault('/latest', fault)
    expect((await kind({ kind: 'latest' })).version).toBe(KIND)
    expect(lines).toContain(
      `warning: kind-version: latest: ${page.url}/latest ${found}; taking ${KIND}, the pinned one`,
    )
  })
})

describe('installed', () => {
  test('is the kind on PATH', async () => {
    await onPath('kind', script('kind v0.34.0-alpha+0123456789abcd go1.26.0 linux/amd64'))
    expect(await kind({ kind: 'installed' })).toEqual({
      path: 'kind',
      version: 'v0.34.0-alpha+0123456789abcd',
      folder: undefined,
    })
    expect(page.requests).toEqual([])
  })

  test('is a failure where there is none', async () => {
    expect(await problem(kind({ kind: 'installed' }))).toBe(
      `kind-version: installed: there is no kind on PATH that runs; put one there, or name a release such as ${KIND}`,
    )
  })

  test('is a failure where it fails', async () => {
    await onPath('kind', '#!/bin/sh\nexit 3\n')
    expect(await problem(kind({ kind: 'installed' }))).toContain('no kind on PATH that runs')
  })

  test('is a failure where it is something else', async () => {
    await onPath('kind', script('hello'))
    expect(await problem(kind({ kind: 'installed' }))).toContain('says "hello')
  })
})

describe('kubectl', () => {
  test('on PATH is left as it is', async () => {
    await onPath('kubectl', KUBECTL)
    expect(await kubectl({ kind: 'cluster' }, 'v1.37.0')).toEqual({
      path: 'kubectl',
      version: 'v1.34.0',
      folder: undefined,
    })
    expect(page.requests).toEqual([])
  })

  test('is the cluster’s version where none is on PATH', async () => {
    const program = await kubectl({ kind: 'cluster' }, 'v1.34.0')
    expect(program?.version).toBe('v1.34.0')
    expect(await readFile(program?.path ?? '', 'utf8')).toBe(KUBECTL)
    expect(page.requests.toSorted()).toEqual([kubectlPath('v1.34.0'), `${kubectlPath('v1.34.0')}.sha256`])
  })

  test('is the pinned kind’s own where the cluster’s version is not known', async () => {
    const said = await problem(kubectl({ kind: 'cluster' }))
    expect(said).toContain('kubectl-version: there is no release kubectl v1.37.0')
  })

  test('of a version that was asked for comes beside another one on PATH', async () => {
    await onPath('kubectl', script('{"clientVersion": {"gitVersion": "v1.20.0"}}'))
    expect((await kubectl({ kind: 'release', version: 'v1.34.0' }))?.folder).toBeDefined()
  })

  test('of a version that was asked for is not fetched where it is on PATH', async () => {
    await onPath('kubectl', KUBECTL)
    expect((await kubectl({ kind: 'release', version: 'v1.34.0' }))?.folder).toBeUndefined()
    expect(page.requests).toEqual([])
  })

  test('is skipped', async () => {
    expect(await kubectl({ kind: 'skip' }, 'v1.34.0')).toBeUndefined()
    expect(page.requests).toEqual([])
  })
})
