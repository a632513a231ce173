import { existsSync, readdirSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import type { Given } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { clusterOfUse, validName } from '../plan.ts'
import type { CommandLine } from './command-line.ts'
import { debugIsOn } from './debug.ts'
import { exportLines, exportPathLine } from './exports.ts'
import { firstPrivateFolder, temporaryFolder, userFolder } from './folder.ts'
import type { Host } from './host.ts'
import { timed } from './timed.ts'
import { setToolFolders } from './tool-folders.ts'

/**
 * A plain terminal. The log goes to stderr, so that a shell can take the variables from stdout.
 *
 * @param env process.env itself: @actions/tool-cache reads what is set in it
 * @param print writes to stderr, a line at a time
 * @param write writes to stdout as it is
 */
export function createTerminalHost(
  env: Record<string, string | undefined>,
  command: CommandLine,
  print: (line: string) => void,
  write: (text: string) => void,
): Host {
  const folder = firstPrivateFolder([userFolder(env, 'XDG_STATE_HOME'), () => join(temporaryFolder(), 'terminal')])
  setToolFolders(env, folder)
  const own: string[] = []
  const owner = `${env['USER'] || `uid ${process.getuid?.() ?? 0}`}@${hostname()}`

  return {
    name: 'terminal',
    env,
    // One job for all that a user starts: a second `up` must not take the first one's cluster for a leftover.
    identity: { owner, job: `terminal/${owner}`, label: basename(process.cwd()) || 'kind' },
    folder,
    given: () => command.given,
    group: (title, work) => {
      print(`${title} ...`)
      return timed(title, work, print)
    },
    info: print,
    debug: message => {
      if (debugIsOn(env)) print(message)
    },
    warning: message => print(`Warning: ${message}`),
    error: message => print(`Error: ${message}`),
    mask: () => {
      // Nobody but the user reads this log.
    },
    remember: async use => {
      // Its folder is what `down` goes by; several shells at once would be in each other's way with one file.
      own.push(use)
    },
    uses: async () => {
      if (command.verb === 'up') return [...own].reverse()
      const uses = readdirSync(folder).filter(use => existsSync(join(folder, use, 'state.json')))
      return chooseUse(uses, command.given['name'], env['KIND_IN_DIND_NAME'])
    },
    exportVariables: async variables => write(exportLines(variables)),
    setOutputs: async () => {
      // The exported variables hold them.
    },
    addPath: async path => write(exportPathLine(path)),
    reportFailure: async () => {
      // The log is in front of the user.
    },
  }
}

/**
 * The cluster that `down` is for: the one that is named, else this shell's, else the only one.
 *
 * @param uses the clusters there are
 * @param named the value of --name
 * @param ofShell KIND_IN_DIND_NAME, which `up` gave to this shell
 * @throws Problem where that is none, or several
 */
export function chooseUse(uses: readonly string[], named: Given, ofShell: string | undefined): readonly string[] {
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
  if (names.length > 1) throw new Problem(`which cluster? ${there}; say kind-in-dind down --name ${names[0]}`)
  return uses
}
