import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { Problem } from '../lib/problem.ts'
import { validName } from '../plan.ts'
import type { CommandLine } from './command-line.ts'
import { debugIsOn } from './debug.ts'
import { exportLines, exportPathLine } from './exports.ts'
import { firstPrivateFolder, temporaryFolder, userFolder } from './folder.ts'
import type { Given, Host } from './host.ts'
import { rememberedFile, rememberedUses, rememberUse } from './remembered.ts'
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
  const remembered = rememberedFile(folder)
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
      own.push(use)
      rememberUse(remembered, use)
    },
    uses: async () => {
      if (command.verb === 'up') return [...own].reverse()
      const uses = rememberedUses(remembered).filter(use => existsSync(join(folder, use)))
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
  const there = uses.length === 0 ? 'there is none' : `there are: ${uses.join(', ')}`
  if (typeof named === 'string') {
    const use = uses.find(use => use === named || use === validName(named))
    if (use === undefined) throw new Problem(`--name: no cluster of yours is called ${named}; ${there}`)
    return [use]
  }
  if (ofShell !== undefined && uses.includes(ofShell)) return [ofShell]
  if (uses.length > 1) throw new Problem(`which cluster? ${there}; say kind-in-dind down --name ${uses[0]}`)
  return uses
}
