import { describe, expect, test } from 'vitest'
import { COMMAND_RAN, difference, judge, type Outcome } from './e2e/ends-judge.ts'
import type { Run } from './e2e/ends-table.ts'

const cancelled: Run = { stage: 'kubeadm', signal: 'SIGTERM', target: 'group', host: 'buildkite' }
const killed: Run = { stage: 'nodes', signal: 'SIGKILL', target: 'group', host: 'github' }
const children: Run = { stage: 'pull', signal: 'SIGINT', target: 'children', host: 'github' }
const outcome = (given: Partial<Outcome>): Outcome => ({
  ...{ cluster: 'c', code: 143, log: 'Cancelled (SIGTERM).\nRemoved c (1 node and its network)' },
  ...{ next: undefined, over: 3000, removing: 500, ...given },
})
const next = 'Removed what other jobs left on the engine: c (1 node): left by the job a/b'

test('a cancel as it must be is fine', () => {
  expect(judge(cancelled, outcome({}))).toEqual([])
  const interrupted: Run = { ...cancelled, signal: 'SIGINT' }
  for (const code of [130, 143]) expect(judge(interrupted, outcome({ code }))).toEqual([])
})

test('a command that is signalled leaves the agent without an exit code', () => {
  const log = `${COMMAND_RAN}\nRemoved c (1 node and its network)`
  expect(judge({ ...cancelled, stage: 'just after ready' }, outcome({ code: 255, log }))).toEqual([])
})

test.each<[string, Partial<Outcome>]>([
  ['its exit code is 1, not 143', { code: 1 }],
  ['it does not say', { log: 'Removed c (1 node)' }],
  ['its post does not say what it removed', { log: 'Cancelled (SIGTERM).' }],
  ['it warns', { log: 'Cancelled (SIGTERM).\nWarning: x\nRemoved c (1 node)' }],
  ['removal began after 2000 ms', { removing: 2000 }],
  ['removal began after undefined ms', { removing: undefined }],
  ['it was over after 8000 ms', { over: 8000 }],
])('of another one is said: %s', (phrase, given) => {
  expect(judge(cancelled, outcome(given))).toEqual([expect.stringContaining(phrase)])
})

describe('where all is killed', () => {
  const judged = (text: string): string[] =>
    judge(killed, outcome({ code: 137, log: '', next: text, removing: undefined }))

  test('the next job says once what it removed', () => expect(judged(next)).toEqual([]))

  test.each([
    ['', /0 times/],
    [`${next}\n${next}`, /2 times/],
    [next.replace(' c ', ' d '), /left by the job/],
    [next.replace('left by the job a/b', 'expired 1h00m ago'), /expired/],
  ])('and it is wrong to say %j', (text, phrase) => {
    expect(judged(text)).toEqual([expect.stringMatching(phrase)])
  })
})

test('pre names its own cause where its children are ended', () => {
  const log = (cause: string): string => `${cause}\nRemoved c (0 nodes)`
  expect(judge(children, outcome({ code: 1, log: log('::error::node-image: the engine cannot pull x: y') }))).toEqual(
    [],
  )
  expect(judge(children, outcome({ code: 1, log: log('::error::docker rm: exit code 1') }))).toHaveLength(1)
})

test('a difference has what is left and what is gone', () => {
  expect(difference(['a', 'b'], ['b', 'c'])).toEqual(['left: c', 'gone: a'])
})
