import { formatBytes } from '../lib/bytes.ts'

/** How a log shows how far something is. */
export interface ProgressLog {
  readonly info: (message: string) => void
  /** Shows a line in the place of the last one; only where somebody looks at a terminal. */
  readonly move?: ((message: string) => void) | undefined
}

/** How often, in milliseconds: a line that moves costs nothing, and each line of a CI's log stays. */
const EVERY = { moving: 200, staying: 5000 }

/** Tells how many bytes were read, and how fast in the last while, as often as the log can bear. */
export function createProgress(log: ProgressLog, now: () => number = () => performance.now()): (bytes: number) => void {
  const every = log.move === undefined ? EVERY.staying : EVERY.moving
  let last = { at: now(), bytes: 0 }
  return bytes => {
    // The next read begins anew.
    if (bytes < last.bytes) last = { at: now(), bytes: 0 }
    const passed = now() - last.at
    if (passed < every) return
    const rate = ((bytes - last.bytes) / passed) * 1000
    ;(log.move ?? log.info)(`Images: ${formatBytes(bytes)} read, ${formatBytes(rate)}/s`)
    last = { at: now(), bytes }
  }
}
