import { formatDuration } from '../lib/duration.ts'
import type { Timeline } from '../lib/timeline.ts'

/** After how long without an end a stage is spoken of, and how often, in milliseconds. */
const PATIENCE = 20_000

/** Does work, and says now and then what it is that takes so long: a log that stands still looks like one that hangs. */
export async function tellingProgress<T>(
  { timeline, clock, info }: { timeline: Timeline; clock: () => number; info: (line: string) => void },
  work: () => Promise<T>,
): Promise<T> {
  const tell = (): void => {
    const slow = timeline.spans().filter(({ start, end }) => end === undefined && clock() - start >= PATIENCE / 2)
    if (slow.length === 0) return
    info(`Still at work: ${slow.map(({ name, start }) => `${name} (${formatDuration(clock() - start)})`).join(', ')}`)
  }
  const timer = setInterval(tell, PATIENCE)
  timer.unref()
  try {
    return await work()
  } finally {
    clearInterval(timer)
  }
}
