import { readFileSync } from 'node:fs'
import { Problem } from './problem.ts'

/**
 * Reads a file that a user named.
 *
 * @returns undefined where there is none
 * @throws Problem, to go on behind the path, where it cannot be read
 */
export function readTextFile(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENAMETOOLONG') return undefined
    const why: Readonly<Record<string, string>> = { EISDIR: 'is a folder', EACCES: 'is not readable for this user' }
    throw new Problem(why[code] ?? `cannot be read (${code})`)
  }
}
