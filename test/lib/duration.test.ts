import { describe, expect, test } from 'vitest'
import { formatDuration, parseDuration } from '../../src/lib/duration.ts'

describe('parseDuration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['250ms', 250],
    ['90s', 90_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1h30m', 5_400_000],
    ['1h2m3s4ms', 3_723_004],
    ['1.5h', 5_400_000],
    ['0.5s', 500],
    ['0.0004s', 0],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each(['', '300', '5', 's', '5 m', '5min', '5M', '-5m', '+5m', '1d', '.5s', '5.s', '1e3s', '5m ', '5m,3s'])(
    '%j is no duration',
    text => {
      expect(parseDuration(text)).toBeUndefined()
    },
  )
})

describe('formatDuration', () => {
  test.each([
    [0, '0.0s'],
    [49, '0.0s'],
    [400, '0.4s'],
    [12_345, '12.3s'],
    [59_949, '59.9s'],
    [59_950, '1m00s'],
    [60_000, '1m00s'],
    [125_400, '2m05s'],
    [3_599_499, '59m59s'],
    [3_599_500, '1h00m'],
    [3_720_000, '1h02m'],
    [86_400_000, '24h00m'],
  ])('%d ms is %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })
})
