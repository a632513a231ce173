import { existsSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { usesIn } from '../src/host/choose-use.ts'
import type { Plan } from '../src/plan.ts'
import { forgetState, loadState, loadStates, saveState, updateState } from '../src/state.ts'
import { aPlan } from './builders.ts'

let folder: string
let plan: Plan
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'state-'))
  plan = aPlan({ options: { name: 'c' }, folder })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const pre = { pid: 1, started: '2' }

test('is read back as it was saved, by its own user alone', () => {
  saveState({ plan, stage: 'making', pre })
  expect(loadState(plan.folder)).toEqual({ plan: JSON.parse(JSON.stringify(plan)), stage: 'making', pre })
  expect(statSync(plan.folder).mode & 0o777).toBe(0o700)
  expect(readdirSync(plan.folder)).toEqual(['state.json'])
  expect(statSync(join(plan.folder, 'state.json')).mode & 0o777).toBe(0o600)
})

test('keeps at the end of pre what was learned on the way, but for the process that is gone', () => {
  saveState({ plan, stage: 'making', joined: true, pre })
  updateState(plan.folder, { stage: 'ready' })
  expect(loadState(plan.folder)).toEqual({ plan: JSON.parse(JSON.stringify(plan)), stage: 'ready', joined: true })
})

test('is not there before pre, nor after post, which may run again', () => {
  expect(loadState(plan.folder)).toBeUndefined()
  updateState(plan.folder, { stage: 'failed' })
  expect(existsSync(plan.folder)).toBe(false)
  saveState({ plan, stage: 'ready' })
  forgetState(plan.folder)
  forgetState(plan.folder)
  expect(loadState(plan.folder)).toBeUndefined()
  expect(existsSync(plan.folder)).toBe(false)
})

test('two uses of a job have one each', () => {
  const other = aPlan({ options: { name: 'd' }, folder })
  saveState({ plan, stage: 'ready' })
  saveState({ plan: other, stage: 'ready' })
  forgetState(plan.folder)
  expect(loadState(other.folder)?.plan.cluster).toBe('d')
})

test('that is broken is an error, not a use that never was', () => {
  saveState({ plan, stage: 'making' })
  writeFileSync(join(plan.folder, 'state.json'), '{')
  expect(() => loadState(plan.folder)).toThrow(
    /state\.json is damaged, so what it was for is not known; look with docker ps, then remove /,
  )
})

test('the states of a job are found beside the files of its folder, the latest first', () => {
  const other = aPlan({ options: { name: 'd' }, folder })
  writeFileSync(join(folder, '.uses-a'), 'c\n')
  saveState({ plan, stage: 'ready' })
  saveState({ plan: other, stage: 'ready' })
  utimesSync(join(plan.folder, 'state.json'), 1, 1)
  expect(loadStates(folder).map(state => state.plan.cluster)).toEqual(['d', 'c'])
  expect(usesIn(folder)).toEqual([other, plan].map(({ folder: its }) => basename(its)))
  expect(loadStates(join(folder, 'none'))).toEqual([])
})
