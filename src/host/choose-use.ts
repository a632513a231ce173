import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Given } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { clusterOfUse, validName } from '../plan.ts'
import { stateChanged } from '../state.ts'
import type { Environment } from './host.ts'

/** The uses that have a state in this folder, the latest first. */
export function usesIn(folder: string): string[] {
  return readdirSync(folder)
    .flatMap(use => {
      const changed = stateChanged(join(folder, use))
      return changed === undefined ? [] : [{ use, changed }]
    })
    .sort((a, b) => b.changed - a.changed)
    .map(({ use }) => use)
}

/**
 * The one use that a later command is for: the one named, else the job's latest, else the only one.
 *
 * @throws Problem where that is none, or several
 */
export function latestUse(folder: string, named: string | undefined, env: Environment): string {
  const [use] = chooseUses(usesIn(folder), named, env['KIND_IN_DIND_NAME'])
  if (use === undefined) {
    throw new Problem('there is no cluster here: nothing was started in this job, or it was removed; start one with up')
  }
  return use
}

/**
 * The uses of the cluster that a command is for: the one that is named, else this shell's, else the only one.
 *
 * @param uses the uses there are
 * @param named the value of --name
 * @param ofShell KIND_IN_DIND_NAME, which `up` gave to this shell
 * @throws Problem where that is none of them, or several
 */
export function chooseUses(uses: readonly string[], named: Given, ofShell: string | undefined): readonly string[] {
  const names = [...new Set(uses.map(clusterOfUse))].sort()
  const there = names.length === 0 ? 'there is none' : `there are: ${names.join(', ')}`
  const usesOf = (...wanted: (string | undefined)[]): string[] => uses.filter(use => wanted.includes(clusterOfUse(use)))
  if (named === true) throw new Problem(`--name: a value is missing; ${there}`)
  if (typeof named === 'string') {
    const found = usesOf(named, validName(named))
    if (found.length === 0) throw new Problem(`--name: no cluster of yours is called ${named}; ${there}`)
    return found
  }
  const own = usesOf(ofShell)
  if (own.length > 0) return own
  if (names.length > 1) throw new Problem(`which cluster? ${there}; say which with --name ${names[0]}`)
  return uses
}
