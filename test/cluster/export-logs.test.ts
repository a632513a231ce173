import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { collectLogs, cut, HALF, partsOf } from '../../src/cluster/collect-logs.ts'
import { exportLogs, safePath } from '../../src/cluster/export-logs.ts'
import { dockerAt } from '../../src/engine/docker.ts'
import { createRunner } from '../../src/lib/run.ts'
import { anEngine } from '../builders.ts'

const never = new AbortController().signal

describe('what comes from a node', () => {
  test('is split at the lines with the mark', () => {
    const parts = partsOf(Buffer.from('noise\nM a.txt\none\ntwo\nM b/c\n\nM d\nM'), 'M')
    expect(Object.fromEntries([...parts].map(([name, content]) => [name, `${content}`]))).toEqual({
      'a.txt': 'one\ntwo',
      'b/c': '',
      d: 'M',
    })
  })

  test('is whole where it is short, and else says where its middle is not', () => {
    expect(`${cut(Buffer.from('0\n1\n2\n3'), 5)}`).toBe('0\n1\n2\n3')
    expect(`${cut(Buffer.from('00\n11\n22\n33\n44'), 5)}`).toBe(
      '00\n\n[... the middle is left out: a file has at most 10 bytes here ...]\n\n44',
    )
    const long = cut(Buffer.from('x'.repeat(2 * HALF)))
    expect(long.length).toBeLessThan(2 * HALF + 200)
  })
})

test.each([
  ['events.txt', 'events.txt'],
  ['n/pods/a_b_c/app/0.log', 'n/pods/a_b_c/app/0.log'],
  ['../../etc/passwd', 'etc/passwd'],
  ['/etc/./passwd', 'etc/passwd'],
  ['a//b\n c:*?', 'a/b__c___'],
  ['..', '_'],
])('the file %j is written to %j, below the folder', (name, path) => {
  expect(safePath(name)).toBe(path)
})

describe('an export', () => {
  let folder: string
  let said: string[]
  let kept: string[]
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'logs-'))
    said = []
    kept = []
  })
  afterEach(() => rmSync(folder, { recursive: true }))

  const host = {
    info: (line: string) => void said.push(line),
    debug: (line: string) => void said.push(line),
    warning: (line: string) => void said.push(`warning: ${line}`),
    keepFiles: async (path: string) => void kept.push(path),
  }

  /** A docker CLI that is a shell script; `$2` is a subcommand. */
  const dockerThat = (script: string) => {
    const runner = createRunner({ env: process.env })
    const instead = (argv: readonly string[]) => ['sh', '-c', script, ...argv] as const
    return dockerAt(anEngine(), {
      run: (argv, options) => runner.run(instead(argv), options),
      try: (argv, options) => runner.try(instead(argv), options),
      start: (argv, options) => runner.start(instead(argv), options),
    })
  }

  test('has files for this user alone, without the values of Secrets', async () => {
    const docker = dockerThat(`case $1 in
      logs) echo 'booted with hunter2-hunter2' ;;
      container) echo '[{"Env": ["HTTP_PROXY=http://joe:pw@proxy:1"]}]' ;;
      exec) cat >/dev/null; while [ "$1" != -- ]; do shift; done
        printf '\\n%s secrets\\naHVudGVyMi1odW50ZXIy\\n\\n%s events.txt\\nhunter2-hunter2 came\\n\\n%s NODE/../../x\\nfine' "$2" "$2" "$2" ;;
    esac`)
    const out = join(folder, 'a/b')
    const exported = await exportLogs(docker, { nodes: ['n'] }, out, host, never)
    expect(exported.folder).toBe(out)
    expect(`${exported.files.get('events.txt')}`).toBe('*** came\n')
    expect(kept).toEqual([out])
    expect(said).toEqual([expect.stringMatching(/^The cluster's logs are in .*a\/b \(4 files, /)])
    const files = readdirSync(out, { recursive: true, encoding: 'utf8' }).filter(f => statSync(join(out, f)).isFile())
    expect(Object.fromEntries(files.map(file => [file, readFileSync(join(out, file), 'utf8')]))).toEqual({
      'events.txt': '*** came\n',
      'n/x': 'fine',
      'n/container.log': 'booted with ***\n',
      'n/container.json': '[{"Env": ["HTTP_PROXY=http://***@proxy:1"]}]\n',
    })
    expect(statSync(out).mode & 0o777).toBe(0o700)
    expect(statSync(join(out, 'n/x')).mode & 0o777).toBe(0o600)
  })

  test('of a cluster that never was makes no folder', async () => {
    const docker = dockerThat('cat >/dev/null; echo "No such container" >&2; exit 1')
    const out = join(folder, 'none')
    expect(await exportLogs(docker, { nodes: ['n'] }, out, host, never)).toEqual({
      folder: undefined,
      files: new Map(),
    })
    expect(readdirSync(folder)).toEqual([])
    expect(kept).toEqual([])
  })

  test('that cannot be written is a warning', async () => {
    const docker = dockerThat('cat >/dev/null; echo here')
    const exported = await exportLogs(docker, { nodes: ['n'] }, '/dev/null/none', host, never)
    expect(exported.folder).toBeUndefined()
    expect(said).toEqual([expect.stringMatching(/^warning: The cluster's logs could not be exported: /)])
  })
})

describe('a node that hangs', () => {
  test('gives what it had said when time is up', async () => {
    const runner = createRunner({ env: process.env })
    const hang = (argv: readonly string[]) =>
      ['sh', '-c', `printf '\\n%s NODE/a\\nhere\\n' "$1"; exec sleep 60`, ...argv] as const
    const docker = dockerAt(anEngine(), {
      run: async () => Promise.reject(new Error('not asked')),
      try: async () => Promise.reject(new Error('not asked')),
      start: argv => runner.start(hang(argv.slice(-4)), {}),
    })
    const started = performance.now()
    const { files, missing } = await collectLogs(docker, { nodes: ['n'] }, 300, never)
    expect(performance.now() - started).toBeLessThan(2000)
    expect([...files].map(([name, content]) => `${name}: ${content}`)).toEqual(['n/a: here\n'])
    expect(missing).toEqual(['n: its container: not asked'])
  })

  test('gives nothing at all to somebody who has no time left', async () => {
    const docker = dockerAt(anEngine(), createRunner({ env: {} }))
    expect((await collectLogs(docker, { nodes: ['n'] }, 300, AbortSignal.abort())).files.size).toBe(0)
  })
})
