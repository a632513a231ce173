import { describe, expect, test } from 'vitest'
import { formatMemory, memoryQuantity, parseQuantity } from '../../src/lib/quantity.ts'

describe('a quantity', () => {
  test.each<[string, number | undefined]>([
    ['2', 2],
    ['1.5', 1.5],
    ['500m', 0.5],
    ['2300m', 2.3],
    ['1k', 1000],
    ['512M', 512e6],
    ['512Mi', 512 * 1024 ** 2],
    ['4Gi', 4 * 1024 ** 3],
    ['0.5Gi', 1024 ** 3 / 2],
    ['24682068Ki', 24_682_068 * 1024],
    ['1Ti', 1024 ** 4],
    ...['', 'Gi', '4GB', '4 Gi', '4gi', '-1', '1e3', '1,5', '.', 'two'].map((text): [string, undefined] => [
      text,
      undefined,
    ]),
  ])('%j is %s', (text, amount) => {
    expect(parseQuantity(text)).toBe(amount)
  })
})

test.each<[number, string]>([
  [4 * 1024 ** 3, '4 GiB'],
  [3.54 * 1024 ** 3, '3.5 GiB'],
  [512 * 1024 ** 2, '512 MiB'],
  [1000, '0 MiB'],
])('%d bytes are shown as %s', (bytes, text) => {
  expect(formatMemory(bytes)).toBe(text)
})

test.each<[number, string]>([
  [4 * 1024 ** 3, '4Gi'],
  [1.5 * 1024 ** 3, '1536Mi'],
  [24_682_068 * 1024, '24682068Ki'],
  [2_500_000_001, '2500000001'],
])('%d bytes are written as %s, which reads back the same', (bytes, text) => {
  expect(memoryQuantity(bytes)).toBe(text)
  expect(parseQuantity(text)).toBe(bytes)
})
