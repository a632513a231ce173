import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** A process, told from a later one with the same number by when it started. */
export interface ProcessIdentity {
  readonly pid: number
  /** Clock ticks since the machine booted; empty where the system does not tell (no /proc). */
  readonly started: string
}

/** How long killed processes may take to be gone, in milliseconds. */
const GONE_LIMIT = 1000

/** The identity of this process. */
export const thisProcess = (): ProcessIdentity => ({ pid: process.pid, started: startOf(process.pid) ?? '' })

/**
 * Ends a process that may still run: asks it to end, and kills it where it does not. Returns when it is gone, or cannot be
 * killed: one that hangs in the kernel makes nothing more.
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
    if (performance.now() > killAt + GONE_LIMIT) break
    if (performance.now() > killAt) process.kill(pid, 'SIGKILL')
    await sleep(20)
  }
  return true
}

/** The variable by which what this program runs is known as started by it, also when the program itself is gone. */
const STARTED_BY = 'KIND_IN_DIND_STARTED_BY'

/** The variables for what this process starts. */
export function startedByThis(): Readonly<Record<string, string>> {
  const { pid, started } = thisProcess()
  return { [STARTED_BY]: `${pid}:${started}` }
}

/**
 * Kills what processes of this program started that are gone themselves: who is killed takes nothing along, and its kind would
 * go on making what a removal removes. Of this user and this machine (of this container, where it is one) alone.
 *
 * @returns how many there were
 */
export async function endStrays(): Promise<number> {
  const strays = processes().filter(pid => {
    const [, by, started = ''] = new RegExp(`(?:^|\0)${STARTED_BY}=(\\d+):(\\d+)\0`).exec(environmentOf(pid)) ?? []
    // A process of another container has the numbers of that one.
    return by !== undefined && startOf(Number(by)) !== started && namespaceOf(pid) === namespaceOf('self')
  })
  for (const pid of strays) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // Ended meanwhile.
    }
  }
  const deadline = performance.now() + GONE_LIMIT
  while (strays.some(pid => startOf(pid) !== undefined) && performance.now() < deadline) await sleep(10)
  return strays.length
}

function processes(): number[] {
  try {
    return readdirSync('/proc')
      .filter(name => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}

/** As /proc/PID/environ has it (proc(5)): empty for another user's. */
function environmentOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'latin1')
  } catch {
    return ''
  }
}

function namespaceOf(pid: number | 'self'): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`)
  } catch {
    return undefined
  }
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
