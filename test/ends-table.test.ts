import { expect, test } from 'vitest'
import { ALL_RUNS, endsAll, HOSTS, hookOf, isThere, RUNS, SIGNALS, STAGES, TARGETS } from './e2e/ends-table.ts'

const runs = RUNS.flat()
const pairs = (of: readonly string[], with_: readonly string[]): string[] =>
  of.flatMap(one => with_.map(other => `${one}, ${other}`)).sort()
const covered = (key: (run: (typeof runs)[number]) => string): string[] => [...new Set(runs.map(key))].sort()

test('at most twenty jobs are ended, each of them in a way that there is', () => {
  expect(runs.length).toBeLessThanOrEqual(20)
  expect(runs.filter(run => !isThere(run))).toEqual([])
})

test('they cover every stage on every host', () => {
  expect(covered(({ stage, host }) => `${stage}, ${host}`)).toEqual(pairs(STAGES, HOSTS))
})

test('they cover every signal to every target', () => {
  expect(covered(({ signal, target }) => `${signal}, ${target}`)).toEqual(pairs(SIGNALS, TARGETS))
})

test('they cover every signal, and every target, on every host', () => {
  expect(covered(({ signal, host }) => `${signal}, ${host}`)).toEqual(pairs(SIGNALS, HOSTS))
  expect(covered(({ target, host }) => `${target}, ${host}`)).toEqual(pairs(TARGETS, HOSTS))
})

test('they kill whole jobs on Buildkite with every fate of their hooks', () => {
  const killed = runs.filter(run => run.host === 'buildkite' && endsAll(run))
  expect([...new Set(killed.map(hookOf))].sort()).toEqual(['goes on', 'hears a hangup', 'is killed too'])
})

test('the two that are under way side by side are at one stage, on both hosts', () => {
  for (const [one, other] of RUNS) expect([one.stage, one.host, other.host]).toEqual([other.stage, ...HOSTS])
})

test('the full table has each of them once', () => {
  const text = ALL_RUNS.map(run => JSON.stringify(run))
  expect(new Set(text).size).toBe(text.length)
  expect(ALL_RUNS).toHaveLength(2 * (8 * 2 * 3 + 3 + 4 * 3))
  for (const run of runs) expect(ALL_RUNS).toContainEqual(run)
})
