import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { firstPrivateFolder, privateFolder, temporaryFolder, userFolder } from '../../src/host/folder.ts'
import { setToolFolders } from '../../src/host/tool-folders.ts'

let base: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'folder-'))
  vi.stubEnv('TMPDIR', base)
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true })
})

const mode = (path: string): number => statSync(path).mode & 0o777

test('a private folder is made with its parents, mode 0700, and may be there already', () => {
  const path = privateFolder(join(base, 'a/b'))
  expect(mode(path)).toBe(0o700)
  expect(privateFolder(path)).toBe(path)
})

test('a folder of ours that others could read is closed', () => {
  const path = join(base, 'open')
  mkdirSync(path)
  chmodSync(path, 0o777)
  privateFolder(path)
  expect(mode(path)).toBe(0o700)
})

test('a symbolic link in its place is refused, wherever it leads', () => {
  mkdirSync(join(base, 'elsewhere'))
  symlinkSync(join(base, 'elsewhere'), join(base, 'link'))
  expect(() => privateFolder(join(base, 'link'))).toThrow(/link is in the way: it is not a folder/)
})

test("another user's folder is refused", () => {
  const path = privateFolder(join(base, 'theirs'))
  vi.spyOn(process, 'getuid').mockReturnValue(424242)
  expect(() => privateFolder(path)).toThrow(/belongs to another user/)
  vi.restoreAllMocks()
})

test('the first place that can be had is taken; if none can, the last reason is told', () => {
  writeFileSync(join(base, 'file'), '')
  const impossible = join(base, 'file/below')
  expect(firstPrivateFolder([undefined, impossible, join(base, 'good')])).toBe(join(base, 'good'))
  expect(() => firstPrivateFolder([impossible])).toThrow(/file\/below cannot be made/)
})

test('nothing is made in places that are not needed', () => {
  firstPrivateFolder([join(base, 'good'), () => temporaryFolder()])
  expect(readdirSync(base)).toEqual(['good'])
})

test('the temporary folder is private and this user’s', () => {
  const path = temporaryFolder()
  expect(path).toBe(join(base, `kind-in-dind-${process.getuid?.()}`))
  expect(mode(path)).toBe(0o700)
})

test.each([
  [{ XDG_STATE_HOME: '/state', HOME: '/home/me' }, '/state/kind-in-dind'],
  [{ XDG_STATE_HOME: 'not/absolute', HOME: '/home/me' }, '/home/me/.local/state/kind-in-dind'],
  [{ HOME: '/home/me' }, '/home/me/.local/state/kind-in-dind'],
])('state of %j is at %s', (env, expected) => {
  expect(userFolder(env, 'XDG_STATE_HOME')).toBe(expected)
})

test('the folders for tools are set where they are absent', () => {
  const env: Record<string, string | undefined> = { HOME: base }
  const job = privateFolder(join(base, 'job'))
  setToolFolders(env, job)
  expect(env).toEqual({
    HOME: base,
    RUNNER_TEMP: join(job, `.download-${process.pid}`),
    RUNNER_TOOL_CACHE: join(base, '.cache/kind-in-dind'),
  })
  expect(mode(env['RUNNER_TEMP'] ?? '')).toBe(0o700)
})

test('the folders for tools that the host has set stay', () => {
  const env = { HOME: base, RUNNER_TEMP: base, RUNNER_TOOL_CACHE: base }
  setToolFolders(env, '/the/job')
  expect(env).toEqual({ HOME: base, RUNNER_TEMP: base, RUNNER_TOOL_CACHE: base })
})

test('where neither the set cache nor the home can be used, the cache is private among the temporary files', () => {
  writeFileSync(join(base, 'file'), '')
  const env: Record<string, string | undefined> = {
    HOME: join(base, 'file'),
    RUNNER_TEMP: base,
    RUNNER_TOOL_CACHE: join(base, 'gone'),
  }
  setToolFolders(env, '/the/job')
  expect(env['RUNNER_TOOL_CACHE']).toBe(join(base, `kind-in-dind-${process.getuid?.()}`, 'tools'))
  expect(mode(env['RUNNER_TOOL_CACHE'] ?? '')).toBe(0o700)
})
