import { TIMED_OUT, TURN } from '../engine/images.ts'
import { messageOf } from '../lib/problem.ts'
import { CommandFailed, type Running } from '../lib/run.ts'

/** How long feeds may take, in milliseconds, and how much is kept for each, in bytes. */
export interface Limits {
  /** What is kept of the stream for a node that is slower than others. */
  readonly room: number
  /** How long one node alone may keep the others waiting; it must also be more than a third of the time. */
  readonly lag: number
  /** How long a node may take nothing at all while it has something to take. */
  readonly stall: number
  /** How long it may take from the stream's end to the import's. */
  readonly finish: number
  /** How long the source may take to begin: an engine writes all layers to its disk before it sends the first. */
  readonly begin: number
  /** How long it may send nothing afterwards while all nodes would take something. */
  readonly silence: number
}

export const LIMITS: Limits = {
  room: 16 * 1024 * 1024,
  lag: 10_000,
  stall: 120_000,
  finish: 600_000,
  begin: 600_000,
  silence: 120_000,
}

/** How an import ended: `behind` is one that was ended because it held up others, `late` one that was because of a deadline. */
export type Outcome = 'done' | 'behind' | { readonly failed: string } | { readonly late: string }

/** One node's import, and what waits to go into it. */
export class Feed {
  /** Milliseconds in which it alone kept the stream waiting. */
  held = 0
  /** When it last took something. */
  took = performance.now()
  /** Whether another import has the node. */
  waitsItsTurn = false
  readonly outcome: Promise<Outcome>
  private readonly running: Running
  private why: Outcome | undefined
  private wake: () => void = () => {}

  /** @param limit seconds that the import may take in the node */
  constructor(running: Running, limit: number) {
    this.running = running
    running.stdout.setEncoding('utf8').on('data', (text: string) => {
      if (text.includes(TURN.waits)) this.waitsItsTurn = true
      if (!text.includes(TURN.begins)) return
      this.waitsItsTurn = false
      this.took = performance.now()
    })
    running.stdin.on('close', () => this.wake())
    this.outcome = running.ended.then(
      () => this.why ?? 'done',
      (error: unknown) => this.why ?? (isTooLate(error) ? { late: tooLong(limit) } : { failed: messageOf(error) }),
    )
  }

  get isOpen(): boolean {
    return this.why === undefined && !this.running.stdin.destroyed && !this.running.stdin.writableEnded
  }

  isFull(limits: Limits): boolean {
    return this.isOpen && this.running.stdin.writableLength >= limits.room
  }

  /** Keeps a chunk until the import takes it. */
  write(chunk: Buffer): void {
    if (!this.isOpen) return
    // What waits for more than a moment begins to wait now.
    if (this.running.stdin.writableLength === 0) this.took = performance.now()
    this.running.stdin.write(chunk, () => {
      this.took = performance.now()
      this.wake()
    })
  }

  /** Resolves when it takes something, or is gone. */
  moved(): Promise<void> {
    return new Promise(resolve => {
      this.wake = resolve
    })
  }

  /** The stream is whole: the import may end by itself. */
  finish(limits: Limits): void {
    if (!this.isOpen) return
    this.running.stdin.end()
    const late = (): void => {
      if (this.waitsItsTurn) timer = setTimeout(late, limits.finish)
      else this.end({ late: unfinished(limits.finish) })
    }
    let timer = setTimeout(late, limits.finish)
    void this.outcome.then(() => clearTimeout(timer))
  }

  /** Ends the import half-way: without an end of the stream, for half of it must not look whole. */
  end(why: Outcome): void {
    this.why ??= why
    this.running.end()
    this.wake()
  }
}

/**
 * Waits until each open feed takes more. One that holds up others for too long is ended as `behind`; one that takes nothing
 * for too long fails, unless another import has the node.
 *
 * @param began when the stream did, as performance.now tells it
 */
export async function waitForRoom(feeds: readonly Feed[], limits: Limits, began: number): Promise<void> {
  for (;;) {
    const full = feeds.filter(feed => feed.isFull(limits))
    if (full.length === 0) return
    const from = performance.now()
    await firstOf(full, Math.min(limits.lag, limits.stall) / 4)
    const now = performance.now()
    const others = feeds.filter(feed => feed.isOpen).length - full.length
    const [alone] = full
    if (full.length === 1 && alone !== undefined && others > 0) {
      alone.held += now - from
      if (alone.held > limits.lag && alone.held > (now - began) / 3) alone.end('behind')
    }
    for (const feed of full) {
      const idle = now - feed.took
      if (idle > limits.stall && !feed.waitsItsTurn) feed.end({ late: stalled(limits.stall) })
      else if (others > 0 && idle > limits.lag) feed.end('behind')
    }
  }
}

/** Resolves when one of the feeds moves, at the latest after so many milliseconds. */
async function firstOf(feeds: readonly Feed[], limit: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, limit)
  })
  await Promise.race([late, ...feeds.map(feed => feed.moved())])
  clearTimeout(timer)
}

function isTooLate(error: unknown): boolean {
  return error instanceof CommandFailed && error.result.code === TIMED_OUT
}

const tooLong = (limit: number): string => `its import, and others in it, took more than ${limit} s`
const stalled = (limit: number): string => `it took nothing for ${limit / 1000} s`
const unfinished = (limit: number): string => `it did not end within ${limit / 1000} s of having all`
