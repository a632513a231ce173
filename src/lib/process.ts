import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process, told from a later one with the same number by when it started. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since the machine booted; empty where the system does not tell (no /proc). */
  readonly started: string
}

/** The identity of this process. */
export const thisProcess = (): ProcessIdentity => ({ pid: process.pid, started: startOf(process.pid) ?? '' })

/**
 * Ends a process that may still run: asks it to end, and kills it where it does not. Returns when it is gone.
 *
 * @param patience milliseconds between asking and killing
 * @returns true where it was running
 */
export async function endProcess({ pid, started }: ProcessIdentity, patience: number): Promise<boolean> {
  const lives = (): boolean => pid !== process.pid && started !== '' && startOf(pid) === started
  if (!lives()) return false
  process.kill(pid, 'SIGTERM')
  const killAt = performance.now() + patience
  while (lives()) {
    if (performance.now() > killAt) process.kill(pid, 'SIGKILL')
    await sleep(20)
  }
  return true
}

/** Field 22 of /proc/PID/stat (proc(5)); a zombie counts as gone. The name in field 2 may hold anything but ends with ")". */
function startOf(pid: number): string | undefined {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\)\s/s, '')
      .split(' ')
    return fields[0] === 'Z' ? undefined : fields[19]
  } catch {
    return undefined
  }
}
