import { existsSync } from 'node:fs'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { validName } from '../plan.ts'
import type { CommandLine } from './command-line.ts'
import { debugIsOn } from './debug.ts'
import { exportLines, exportPathLine } from './exports.ts'
import { firstPrivateFolder, temporaryFolder, userFolder } from './folder.ts'
import type { Host } from './host.ts'
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
      const { name } = command.given
      const chosen =
        typeof name === 'string' ? uses.filter(use => use === name || use === validName(name)) : uses.slice(0, 1)
      if (chosen.length === 0 && typeof name === 'string' && uses.length > 0) {
        print(`No cluster here is called ${name}; there are: ${uses.join(', ')}`)
      }
      return chosen
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
