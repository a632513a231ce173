import { accessSync, chmodSync, constants, existsSync, lstatSync, mkdirSync, type Stats } from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Environment } from './host.ts'

/**
 * Makes a folder that is this user's alone: mode 0700, and no symbolic link that somebody put there before us.
 *
 * @throws Problem where the folder is another user's, no folder, or cannot be written
 */
export function privateFolder(path: string): string {
  const found = madeOrFound(path)
  if (!found.isDirectory()) throw new Problem(`${path} is in the way: it is not a folder; remove it`)
  if (process.getuid !== undefined && found.uid !== process.getuid()) {
    throw new Problem(`${path} belongs to another user (uid ${found.uid}); remove it`)
  }
  if ((found.mode & 0o777) !== 0o700) chmodSync(path, 0o700)
  if (!writable(path)) throw new Problem(`${path} cannot be written`)
  return path
}

/**
 * Takes the first of several paths that can be a private folder.
 *
 * @param candidates in the order of preference, undefined ones left out; functions are asked only when it is their turn
 * @throws Problem as the last one gave it, where none can
 */
export function firstPrivateFolder(candidates: readonly (string | undefined | (() => string))[]): string {
  let last = new Problem('there is no place for a folder of this job')
  for (const candidate of candidates) {
    if (candidate === undefined) continue
    try {
      return privateFolder(typeof candidate === 'string' ? candidate : candidate())
    } catch (error) {
      last = new Problem(messageOf(error))
    }
  }
  throw last
}

/** This user's folder among the temporary files; `/tmp` is everybody's, so the name has the user's id in it. */
export function temporaryFolder(): string {
  return privateFolder(join(tmpdir(), `kind-in-dind-${process.getuid?.() ?? 0}`))
}

/**
 * A folder below one of the user's base directories (XDG Base Directory Specification).
 *
 * @returns undefined where there is no home: containers run with user ids that no passwd entry knows
 */
export function userFolder(env: Environment, variable: 'XDG_STATE_HOME' | 'XDG_CACHE_HOME'): string | undefined {
  const base = env[variable]
  if (base?.startsWith('/')) return join(base, 'kind-in-dind')
  const home = env['HOME'] || passwdHome()
  if (!home) return undefined
  return join(home, variable === 'XDG_STATE_HOME' ? '.local/state' : '.cache', 'kind-in-dind')
}

export function writable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function madeOrFound(path: string): Stats {
  try {
    if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true })
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
    return lstatSync(path)
  } catch (error) {
    throw new Problem(`${path} cannot be made: ${messageOf(error)}`)
  }
}

function passwdHome(): string | undefined {
  try {
    return homedir()
  } catch {
    return undefined
  }
}
