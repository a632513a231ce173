import { formatDuration } from '../lib/duration.ts'
import type { Paint } from './paint.ts'

/** Runs work, then says how long it took and whether it failed. */
export async function timed<T>(work: () => Promise<T>, paint: Paint, say: (line: string) => void): Promise<T> {
  const started = performance.now()
  const took = (): string => formatDuration(performance.now() - started)
  try {
    const result = await work()
    say(paint.good(`done in ${took()}`))
    return result
  } catch (error) {
    say(paint.bad(`failed after ${took()}`))
    throw error
  }
}
