import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import { loadStates } from '../state.ts'
import { chooseUses, latestUse, usesIn } from './choose-use.ts'
import type { CommandLine } from './command-line.ts'
import { debugIsOn } from './debug.ts'
import { exportLines, exportPathLine } from './exports.ts'
import { firstPrivateFolder, temporaryFolder, userFolder } from './folder.ts'
import type { Host } from './host.ts'
import type { Paint } from './paint.ts'
import { byHandFile, downloadFolder, rememberUse } from './remembered.ts'
import { timed } from './timed.ts'
import { setToolFolders } from './tool-folders.ts'

/**
 * A plain terminal. The log goes to stderr, so that a shell can take the variables from stdout.
 *
 * @param env process.env itself: @actions/tool-cache reads what is set in it
 * @param print writes to stderr, a line at a time
 * @param write writes to stdout as it is
 * @param colours of the log
 * @param within the CI system in whose job it runs
 */
export function createTerminalHost(
  env: Record<string, string | undefined>,
  command: CommandLine,
  print: (line: string) => void,
  write: (text: string) => void,
  colours: Paint,
  within: Host['name'] = 'terminal',
): Host {
  const folder = firstPrivateFolder([
    // A job's: the launcher that pre puts on PATH says it.
    env['KIND_IN_DIND_FOLDER'],
    userFolder(env, 'XDG_STATE_HOME'),
    () => join(temporaryFolder(), 'terminal'),
  ])
  setToolFolders(env, folder)
  const own: string[] = []
  // In a job a cluster is that job's, whose post takes it down with the others.
  const job = folder === env['KIND_IN_DIND_FOLDER'] ? loadStates(folder)[0]?.plan : undefined
  const owner = `${env['USER'] || `uid ${process.getuid?.() ?? 0}`}@${hostname()}`

  return {
    name: 'terminal',
    within,
    cancelLimit: undefined,
    env,
    // One job for all that a user starts: a second `up` must not take the first one's cluster for a leftover.
    identity: {
      ...(job === undefined ? { owner, job: `terminal/${owner}` } : { owner: job.owner, job: job.job }),
      label: basename(process.cwd()) || 'kind',
    },
    folder,
    downloads: downloadFolder(folder),
    // Its owner has one job, which is never over.
    jobFolders: () => [],
    logsFolder: join(temporaryFolder(), 'logs'),
    given: () => command.given,
    group: (title, work) => {
      print(colours.strong(`${title} ...`))
      return timed(work, colours, line => print(`  ${line}`))
    },
    info: message => print(message.replace(/^(?! )/gm, '  ')),
    debug: message => {
      if (debugIsOn(env)) print(message)
    },
    warning: message => print(colours.warn(`Warning: ${message}`)),
    error: message => print(colours.bad(`Error: ${message}`)),
    print: text => write(`${text}\n`),
    mask: () => {
      // Nobody but the user reads this log.
    },
    remember: async use => {
      // Its folder is what `down` goes by; several shells at once would be in each other's way with one file.
      own.push(use)
      if (job !== undefined) rememberUse(byHandFile(folder), use)
    },
    uses: async () => {
      if (command.verb === 'up') return [...own].reverse()
      return chooseUses(usesIn(folder), command.given['name'], env['KIND_IN_DIND_NAME'])
    },
    chosen: named => latestUse(folder, named, env),
    exportVariables: async variables => write(exportLines(variables)),
    setOutputs: async () => {
      // The exported variables hold them.
    },
    addPath: async path => write(exportPathLine(path)),
    jobStatus: () => undefined,
    keepFiles: async () => {
      // They are on the user's disk.
    },
    conclude: (title, lines) => print([colours.strong(title), ...lines].join('\n')),
    // The log is in front of the user.
    summary: { when: 'never', draws: false },
    showSummary: async ({ markdown }) => print(`\n${markdown}`),
  }
}
