/** buildx' folder of configuration: the user's own builders are in it, and what we leave in it must go again. */
import { existsSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from '../host/host.ts'

/** Where the docker CLI keeps its configuration and looks for plugins. */
export function dockerFolder(env: Environment): string {
  return env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker')
}

/** Where buildx keeps its own (util/confutil in its source). */
export function buildxFolder(env: Environment): string {
  return env['BUILDX_CONFIG'] || join(dockerFolder(env), 'buildx')
}

/** The folders and files that any command of buildx makes, beside those that carry a builder's name. */
const FOLDERS = ['instances', 'defaults', 'activity', 'refs']
const LOCK = '.lock'
const FILES = [LOCK, '.buildNodeID']

/** What of buildx' folder is not there yet, the folders above it included: a folder stands before what is in it. */
export function missingPaths(folder: string): string[] {
  return [dirname(folder), folder, ...[...FOLDERS, ...FILES].map(name => join(folder, name))].filter(
    path => !existsSync(path),
  )
}

/**
 * Removes what was not there before the job: files, the lock where no builder is left for which it may be held, and folders that
 * are empty.
 *
 * @param missing as `missingPaths` found it
 */
export function removeNew(folder: string, missing: readonly string[]): void {
  const kept = holds(join(folder, 'instances')) ? [LOCK] : []
  for (const name of FILES.filter(file => !kept.includes(file))) {
    if (missing.includes(join(folder, name))) rmSync(join(folder, name), { force: true })
  }
  for (const path of missing.toReversed()) {
    try {
      rmdirSync(path)
    } catch {
      // Others have put something there, or it never was.
    }
  }
}

function holds(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0
}
