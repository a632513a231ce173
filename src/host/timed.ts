import { formatDuration } from '../lib/duration.ts'

/** Runs work, then says how long it took and whether it failed. */
export async function timed<T>(title: string, work: () => Promise<T>, say: (line: string) => void): Promise<T> {
  const started = performance.now()
  const took = (): string => formatDuration(performance.now() - started)
  try {
    const result = await work()
    say(`${title}: done in ${took()}`)
    return result
  } catch (error) {
    say(`${title}: failed after ${took()}`)
    throw error
  }
}
