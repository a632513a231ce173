import { expect, test } from 'vitest'
import { createProgress } from '../../src/images/progress.ts'

/** What a log shows of reads that took so many bytes at such times. */
function shown(at: readonly (readonly [ms: number, bytes: number])[], moves: boolean): string[] {
  const lines: string[] = []
  const say = (line: string): void => void lines.push(line)
  let now = 0
  const progress = createProgress({ info: say, move: moves ? say : undefined }, () => now)
  for (const [ms, bytes] of at) {
    now = ms
    progress(bytes)
  }
  return lines
}

test('a log that stays gets a line every few seconds, with bytes and rate', () => {
  expect(
    shown(
      [
        [100, 1e6],
        [4999, 2e6],
        [5000, 100e6],
        [7000, 150e6],
        [10_000, 350e6],
      ],
      false,
    ),
  ).toEqual(['Images: 100 MB read, 20 MB/s', 'Images: 350 MB read, 50 MB/s'])
})

test('a terminal gets them as fast as one can look', () => {
  expect(
    shown(
      [
        [100, 1e6],
        [200, 2e6],
        [300, 3e6],
        [400, 4e6],
      ],
      true,
    ),
  ).toEqual(['Images: 2.0 MB read, 10 MB/s', 'Images: 4.0 MB read, 10 MB/s'])
})

test('a second read begins anew', () => {
  expect(
    shown(
      [
        [5000, 100e6],
        [6000, 0],
        [11_000, 50e6],
      ],
      false,
    ),
  ).toEqual(['Images: 100 MB read, 20 MB/s', 'Images: 50 MB read, 10 MB/s'])
})
