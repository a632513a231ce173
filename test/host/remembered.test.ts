import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { downloadFolder, rememberedFile, rememberedUses, rememberUse, tidyFolder } from '../../src/host/remembered.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'remembered-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

test('uses come back the latest first, each once', () => {
  const file = rememberedFile(folder)
  for (const use of ['one', 'two', 'one']) rememberUse(file, use)
  expect(rememberedUses(file)).toEqual(['one', 'two'])
})

test('nothing remembered is no use', () => {
  expect(rememberedUses(rememberedFile(folder))).toEqual([])
})

test('lists with different keys do not mix, and a key cannot leave the folder', () => {
  rememberUse(rememberedFile(folder, '../a'), 'one')
  expect(rememberedUses(rememberedFile(folder, 'b'))).toEqual([])
  expect(rememberedFile(folder, '../a')).toBe(join(folder, '.uses-___a'))
})

test('tidying keeps what still has a folder, and removes the last trace of the rest', () => {
  mkdirSync(join(folder, 'kept'))
  for (const use of ['gone', 'kept']) rememberUse(rememberedFile(folder, 'a'), use)
  rememberUse(rememberedFile(folder, 'b'), 'gone')

  tidyFolder(folder)
  expect(rememberedUses(rememberedFile(folder, 'a'))).toEqual(['kept'])
  expect(existsSync(rememberedFile(folder, 'b'))).toBe(false)

  rmSync(join(folder, 'kept'), { recursive: true })
  tidyFolder(folder)
  expect(existsSync(folder)).toBe(false)
  tidyFolder(folder)
})

test("tidying keeps the job's mark as long as a use is left", () => {
  mkdirSync(join(folder, 'kept'))
  rememberUse(rememberedFile(folder, 'a'), 'kept')
  writeFileSync(join(folder, '.job-a'), 'unique')
  tidyFolder(folder)
  expect(readdirSync(folder)).toContain('.job-a')

  rmSync(join(folder, 'kept'), { recursive: true })
  tidyFolder(folder)
  expect(existsSync(folder)).toBe(false)
})

test('tidying removes the downloads of processes that are gone, and of this one, but of no other', () => {
  const ended = spawnSync('true').pid
  for (const pid of [ended, process.pid, process.ppid])
    mkdirSync(join(downloadFolder(folder, pid), 'half'), { recursive: true })
  tidyFolder(folder)
  expect(readdirSync(folder)).toEqual([`.download-${process.ppid}`])
})

test('tidying keeps programs that have no cache to be in, for as long as there is a use', () => {
  const ended = spawnSync('true').pid
  mkdirSync(join(downloadFolder(folder, ended), 'tools/kubectl'), { recursive: true })
  mkdirSync(join(folder, 'use'))
  writeFileSync(join(folder, 'use/state.json'), '{}')
  tidyFolder(folder)
  expect(readdirSync(folder).sort()).toEqual([`.download-${ended}`, 'use'])

  rmSync(join(folder, 'use'), { recursive: true })
  tidyFolder(folder)
  expect(existsSync(folder)).toBe(false)
})
