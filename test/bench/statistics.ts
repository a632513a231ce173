/** What samples say. Pure. */

/** Milliseconds of one way of doing a thing, in the order of the rounds. */
export type Samples = readonly number[]

/** @throws RangeError where there is no sample */
export function median(samples: Samples): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  if (upper === undefined || lower === undefined) throw new RangeError('a median of nothing')
  return (upper + lower) / 2
}

/** A row's bound: of the baseline, in milliseconds more than it, or in milliseconds where there is no baseline. */
export interface Bound {
  readonly kind: 'ratio' | 'more' | 'absolute'
  readonly must: number
  readonly aim: number
}

/** What a row came to, in its bound's unit. */
export function result(kind: Bound['kind'], ours: Samples, baseline: Samples): number {
  if (kind === 'ratio') return median(ours) / median(baseline)
  return kind === 'more' ? median(ours) - median(baseline) : median(ours)
}

export function verdict(bound: Bound, value: number): 'aim' | 'must' | 'over' {
  return value <= bound.aim ? 'aim' : value <= bound.must ? 'must' : 'over'
}
