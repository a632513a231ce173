/** What a node runs is run for real, with a ctr that writes down how it is called, and what it is given. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { takeImages } from '../../src/images/take.ts'
import { type Argv, createRunner, type Result } from '../../src/lib/run.ts'

const LARGE = Buffer.alloc(9 * 1024 * 1024, 'a layer')
const SMALL = Buffer.alloc(1000, 'a manifest')

let folder: string
let store: string
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'take-'))
  store = join(folder, 'containerd/io.containerd.content.v1.content/blobs/sha256')
  for (const made of ['bin', 'layout/blobs/sha256', 'imported', 'cwd'])
    mkdirSync(join(folder, made), { recursive: true })
  mkdirSync(store, { recursive: true })
})
afterEach(() => rmSync(folder, { recursive: true }))

/** @param given.ctr what it does when content is made known; given.at containerd's folder */
async function take(
  files: Readonly<Record<string, Buffer>>,
  { without = [] as string[], ctr = 'wc -c', at = join(folder, 'containerd') } = {},
): Promise<Result> {
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, 'layout', name), content)
  const program = (name: string, script: string): void =>
    writeFileSync(join(folder, 'bin', name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  program('flock', 'shift 3; exec "$@"')
  program(
    'ctr',
    `case "$*" in
      *' images import '*) echo "$*" >>${folder}/calls; exec tar --extract --file=- --directory=${folder}/imported;;
      *) told=$(${ctr}) || exit; echo "$* $told" >>${folder}/calls;;
    esac`,
  )
  const runner = createRunner({ env: { PATH: `${folder}/bin:${process.env['PATH']}` } })
  const command = takeImages({ snapshotter: 'native', without }, 60, at)
  const packed: Argv = ['bash', '-c', `tar c -C ${folder}/layout . | "$@"`, 'pack', ...command]
  return runner.try(packed, { cwd: join(folder, 'cwd') })
}

const calls = (): string[] => readFileSync(join(folder, 'calls'), 'utf8').trim().split('\n')
const imported = (): string[] =>
  readdirSync(join(folder, 'imported'), { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ name }) => name)
    .toSorted()

test('what is large lies where containerd has its content and is made known, the rest is imported', async () => {
  const { code, stderr } = await take({ 'blobs/sha256/aa': LARGE, 'blobs/sha256/bb': SMALL, 'index.json': SMALL })
  expect(code, stderr).toBe(0)
  expect(calls()).toEqual([
    expect.stringMatching(/^--namespace=k8s.io content ingest --expected-digest=sha256:\w{64} /),
    expect.stringMatching(
      /^--namespace=k8s.io content label sha256:\w{64} containerd.io\/gc.root=kind-in-dind containerd.io\/gc.ref.content.aa=sha256:aa /,
    ),
    `--namespace=k8s.io content ingest --expected-digest=sha256:aa --expected-size=${LARGE.length} kind-in-dind-aa ${LARGE.length}`,
    '--namespace=k8s.io images import --digests --snapshotter=native -',
    expect.stringMatching(/^--namespace=k8s.io content label sha256:\w{64} containerd.io\/gc.root= /),
  ])
  expect(readFileSync(join(store, 'aa')).equals(LARGE)).toBe(true)
  expect(imported()).toEqual(['bb', 'index.json'])
  expect(readdirSync(join(folder, 'containerd'))).toEqual(['io.containerd.content.v1.content'])
})

test('a layer that the node has is left out', async () => {
  await take({ 'blobs/sha256/aa': LARGE, 'blobs/sha256/bb': LARGE, 'index.json': SMALL }, { without: ['sha256:aa'] })
  expect(readdirSync(store)).toEqual(['bb'])
  expect(imported()).toEqual(['index.json'])
})

test('an archive of the form that engines before OCI layouts write is imported as it is', async () => {
  const { code } = await take({ 'layer.tar': LARGE, 'manifest.json': SMALL })
  expect(code).toBe(0)
  expect(imported()).toEqual(['layer.tar', 'manifest.json'])
})

test('where containerd has its content elsewhere, all is imported', async () => {
  rmSync(store, { recursive: true })
  await take({ 'blobs/sha256/aa': LARGE, 'index.json': SMALL })
  expect(imported()).toEqual(['aa', 'index.json'])
})

test('a failure is one, and leaves no folder', async () => {
  const { code, stderr } = await take({ 'blobs/sha256/aa': LARGE }, { ctr: 'echo refused >&2; exit 3' })
  expect(stderr).toContain('refused')
  expect(code).not.toBe(0)
  expect(existsSync(join(folder, 'imported/index.json'))).toBe(false)
  expect(readdirSync(join(folder, 'containerd'))).toEqual(['io.containerd.content.v1.content'])
})

test('without a folder to work in nothing is written or removed', async () => {
  writeFileSync(join(folder, 'cwd/bystander'), '')
  const { code } = await take({ 'blobs/sha256/aa': LARGE }, { at: join(folder, 'gone') })
  expect(code).not.toBe(0)
  expect(existsSync(join(folder, 'calls'))).toBe(false)
  expect(readdirSync(join(folder, 'cwd'))).toEqual(['bystander'])
})
