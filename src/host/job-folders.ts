import { existsSync, lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { thisProcess } from '../lib/process.ts'
import type { Identity, JobFolder, JobMark } from './host.ts'
import { JOB_MARK } from './remembered.ts'

/** What a folder of a job's own is called, right in the folder of temporary files. */
export function jobFolderName(jobId: string): string {
  return `kind-in-dind-${jobId}`
}

/** A job's folder, or a file that hooks/pre-command made for it: mktemp gives that ten characters of its own. */
const NAME = /^(kind-in-dind-[A-Za-z0-9-]+?)(\.[A-Za-z0-9]{10})?$/

const MARK = `${JOB_MARK}owner`

/** Writes whose it is into a new folder, so that it is known also where the job is killed before it has a plan. */
export function markFolder(folder: string, { owner, job }: Identity): void {
  const mark: JobMark = { owner, job, process: thisProcess() }
  try {
    writeFileSync(join(folder, MARK), JSON.stringify(mark), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
}

/**
 * The folders of this user's jobs in a folder of temporary files, with the files beside them. Others have names that begin like
 * theirs: without a mark or a use in it, a folder is none of a job's.
 */
export function jobFolders(base: string): JobFolder[] {
  const found = new Map<string, { files: string[]; changed: number }>()
  for (const name of readdirSync(base)) {
    const [, folder, suffix] = NAME.exec(name) ?? []
    if (folder === undefined) continue
    const is = lstatSync(join(base, name), { throwIfNoEntry: false })
    if (is === undefined || is.uid !== process.getuid?.()) continue
    if (suffix === undefined ? !is.isDirectory() : !is.isFile()) continue
    const job = found.get(folder) ?? { files: [], changed: 0 }
    found.set(folder, {
      files: suffix === undefined ? job.files : [...job.files, join(base, name)],
      changed: Math.max(job.changed, is.mtimeMs),
    })
  }
  return [...found].flatMap(([name, { files, changed }]) => {
    const path = join(base, name)
    const mark = readMark(path)
    const isJobs = !existsSync(path) || mark !== undefined || holdsUses(path)
    return isJobs ? [{ path, files, mark, changed }] : []
  })
}

function readMark(folder: string): JobMark | undefined {
  try {
    const { owner, job, process } = JSON.parse(readFileSync(join(folder, MARK), 'utf8')) as Partial<JobMark>
    return owner === undefined || job === undefined || process === undefined ? undefined : { owner, job, process }
  } catch {
    return undefined
  }
}

function holdsUses(folder: string): boolean {
  try {
    return readdirSync(folder).some(use => existsSync(join(folder, use, 'state.json')))
  } catch {
    return false
  }
}
