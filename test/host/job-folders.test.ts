import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { jobFolderName, jobFolders, markFolder } from '../../src/host/job-folders.ts'
import { thisProcess } from '../../src/lib/process.ts'
import { anIdentity } from '../builders.ts'

let base: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'job-folders-'))
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const folder = (id: string): string => {
  const path = join(base, jobFolderName(id))
  mkdirSync(path)
  return path
}
const file = (name: string): string => {
  writeFileSync(join(base, name), '')
  return join(base, name)
}
const names = (): string[] => jobFolders(base).map(({ path }) => path.slice(base.length + 1))

test('a folder says whose it is, to its user alone, and by whom it was made first', () => {
  const path = folder('a')
  markFolder(path, anIdentity({ owner: 'agent-1', job: 'a/0' }))
  markFolder(path, anIdentity({ owner: 'agent-2', job: 'b/0' }))
  expect(jobFolders(base)).toEqual([
    {
      path,
      files: [],
      mark: { owner: 'agent-1', job: 'a/0', process: thisProcess() },
      changed: expect.closeTo(Date.now(), -5),
    },
  ])
  expect(statSync(join(path, '.job-owner')).mode & 0o777).toBe(0o600)
})

test('with it go the files that the hook made for that job, and no other', () => {
  const path = folder('0190-a')
  markFolder(path, anIdentity())
  const mine = file('kind-in-dind-0190-a.0123456789')
  file('kind-in-dind-0190-a.log')
  const other = file('kind-in-dind-0190-b.abcdefghij')
  utimesSync(other, 1000, 1000)
  const found = jobFolders(base)
  expect(found.find(one => one.path === path)?.files).toEqual([mine])
  expect(found.filter(one => one.path !== path)).toEqual([
    { path: join(base, 'kind-in-dind-0190-b'), files: [other], mark: undefined, changed: 1_000_000 },
  ])
})

test('a folder with a use counts, also where its mark is damaged', () => {
  const path = folder('a')
  mkdirSync(join(path, 'use'))
  writeFileSync(join(path, 'use/state.json'), '{}')
  writeFileSync(join(path, '.job-owner'), '{')
  expect(jobFolders(base)).toMatchObject([{ path, mark: undefined }])
})

test('what is called alike and is no job’s does not count: a cache, a link, a file', () => {
  mkdirSync(join(base, 'kind-in-dind-node-0/bin'), { recursive: true })
  mkdirSync(join(base, 'kind-in-dind-0/terminal/use'), { recursive: true })
  writeFileSync(join(base, 'kind-in-dind-0/terminal/use/state.json'), '{}')
  symlinkSync(base, join(base, 'kind-in-dind-a'))
  file('kind-in-dind-b')
  file('kind-in-dind-c.tar')
  mkdirSync(join(base, 'kind-in-dind-d.0123456789'))
  file('tmp.0123456789')
  expect(names()).toEqual([])
})

test('hooks/pre-command names its file that way', () => {
  const hook = readFileSync(join(import.meta.dirname, '../../hooks/pre-command'), 'utf8')
  // biome-ignore lint/suspicious/noTemplateCurlyInString: bash's
  expect(hook).toContain('/kind-in-dind-${job//[^A-Za-z0-9-]/-}.XXXXXXXXXX"')
})
