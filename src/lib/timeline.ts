/** What took how long, and what went on beside it. */

/** A stage of the work, as it went. Milliseconds since the process began. */
export interface Span {
  readonly name: string
  readonly start: number
  /** Undefined while it goes on. */
  readonly end: number | undefined
  readonly failed: boolean
}

export interface Timeline {
  /** Does work as a stage; one that fails is recorded as such. */
  span<T>(name: string, work: () => Promise<T>): Promise<T>
  /**
   * Begins a stage whose end comes by another way.
   *
   * @returns what ends it; later calls do nothing
   */
  begin(name: string): (how?: 'failed') => void
  /** The stages so far, in the order in which they began. */
  spans(): readonly Span[]
}

/** @param clock milliseconds since the process began, as `performance.now` tells them */
export function createTimeline(clock: () => number): Timeline {
  const spans: { name: string; start: number; end: number | undefined; failed: boolean }[] = []
  const begin = (name: string) => {
    const span = { name, start: clock(), end: undefined as number | undefined, failed: false }
    spans.push(span)
    return (how?: 'failed'): void => {
      if (span.end !== undefined) return
      span.end = clock()
      span.failed = how === 'failed'
    }
  }
  return {
    span: async (name, work) => {
      const end = begin(name)
      try {
        const result = await work()
        end()
        return result
      } catch (error) {
        end('failed')
        throw error
      }
    },
    begin,
    spans: () => spans.map(span => ({ ...span })),
  }
}

/** A timeline's stages with an end each: one that goes on ends now, and where the work failed it did not get through. */
export function closed(spans: readonly Span[], now: number): (Span & { readonly end: number })[] {
  return spans.map(span => ({ ...span, end: span.end ?? now, failed: span.failed || span.end === undefined }))
}
