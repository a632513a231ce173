import { expect, test } from 'vitest'
import { median, result, verdict } from './statistics.ts'

test.each([
  [[3, 1, 2], 2],
  [[4, 1, 3, 2], 2.5],
  [[7], 7],
])('the median of %j is %d', (samples, expected) => {
  expect(median(samples)).toBe(expected)
})

test('no samples have no median', () => {
  expect(() => median([])).toThrow(RangeError)
})

test.each([
  ['ratio', 0.5],
  ['more', -100],
  ['absolute', 100],
] as const)('as a %s', (kind, expected) => {
  expect(result(kind, [90, 100, 110], [200, 190, 210])).toBe(expected)
})

test.each([
  [0.5, 'aim'],
  [0.55, 'aim'],
  [0.6, 'must'],
  [0.7, 'must'],
  [0.71, 'over'],
] as const)('%d is %s', (value, expected) => {
  expect(verdict({ kind: 'ratio', must: 0.7, aim: 0.55 }, value)).toBe(expected)
})
