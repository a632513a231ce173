import { appendFileSync, existsSync, readdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { loadStates } from '../state.ts'

/** What a file of remembered uses is called. The dot keeps it apart from the uses' own folders, whose names have none. */
const PREFIX = '.uses'

const DOWNLOADS = '.download-'

/** What a file that marks a job is called; it is of no use once the job's uses are gone. */
export const JOB_MARK = '.job-'

/** Where a process downloads to, and keeps programs that it cannot put into the tool cache. A process that is killed leaves what is in it. */
export function downloadFolder(folder: string, pid = process.pid): string {
  return join(folder, `${DOWNLOADS}${pid}`)
}

/** @param key tells one list of uses from another in the same folder; empty for the only one */
export function rememberedFile(folder: string, key = ''): string {
  return join(folder, key === '' ? PREFIX : `${PREFIX}-${key.replace(/[^A-Za-z0-9_-]/g, '_')}`)
}

/** Notes a use at once and for good: a kill right afterwards does not lose it. */
export function rememberUse(file: string, use: string): void {
  appendFileSync(file, `${use}\n`, { mode: 0o600 })
}

/** The remembered uses, the latest first, each once; none where nothing was remembered. */
export function rememberedUses(file: string): string[] {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
  const uses = text.split('\n').filter(line => line !== '')
  return [...new Set(uses.reverse())]
}

/** Where is noted what the command `up` starts in a job; the job's post reads it. */
export const byHandFile = (folder: string): string => rememberedFile(folder, 'up')

/** The uses that the command `up` started in a job, the latest first: their states tell whose they are. */
export function usesByHand(folder: string, job: string): string[] {
  const its = loadStates(folder).filter(({ plan }) => plan.job === job)
  const folders = its.map(({ plan }) => basename(plan.folder))
  return rememberedUses(byHandFile(folder)).filter(use => folders.includes(use))
}

/**
 * Removes what no process downloads any more, forgets the uses that have no folder any more, and removes the job's folder
 * when nothing is left in it. Never throws: it is called when all that matters is done.
 */
export function tidyFolder(folder: string): void {
  try {
    const names = readdirSync(folder)
    const isInUse = names.some(use => existsSync(join(folder, use, 'state.json')))
    for (const name of names) {
      // Programs without a cache are there for as long as the job's uses.
      const isNeeded = isInUse && existsSync(join(folder, name, 'tools'))
      if (name.startsWith(DOWNLOADS) && !isNeeded && !runsElsewhere(Number(name.slice(DOWNLOADS.length)))) {
        rmSync(join(folder, name), { recursive: true })
      }
      if (name !== PREFIX && !name.startsWith(`${PREFIX}-`)) continue
      const file = join(folder, name)
      const left = rememberedUses(file).filter(use => existsSync(join(folder, use)))
      if (left.length === 0) rmSync(file, { force: true })
      else writeFileSync(file, `${left.reverse().join('\n')}\n`, { mode: 0o600 })
    }
    const left = readdirSync(folder)
    if (left.every(name => name.startsWith(JOB_MARK))) for (const name of left) rmSync(join(folder, name))
    rmdirSync(folder)
  } catch {
    // Gone already, or something is still in it.
  }
}

function runsElsewhere(pid: number): boolean {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
