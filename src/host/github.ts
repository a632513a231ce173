import { createHash, randomBytes } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname, join } from 'node:path'
import * as core from '@actions/core'
import type { Given } from '../lib/given.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { latestUse } from './choose-use.ts'
import { debugIsOn } from './debug.ts'
import { firstPrivateFolder, temporaryFolder } from './folder.ts'
import type { Environment, Host, Identity, JobStatus } from './host.ts'
import { paint } from './paint.ts'
import { downloadFolder, JOB_MARK, rememberedFile, rememberedUses, rememberUse, usesByHand } from './remembered.ts'
import { timed } from './timed.ts'
import { setToolFolders } from './tool-folders.ts'

/**
 * GitHub's runner, and act, which plays it.
 *
 * @param env process.env itself: @actions/core reads and changes it
 */
export function createGitHubHost(env: Record<string, string | undefined>): Host {
  const jobKey = jobKeyOf(env)
  const temp = env['RUNNER_TEMP']
  const folder = firstPrivateFolder([
    temp ? join(temp, 'kind-in-dind') : undefined,
    () => join(temporaryFolder(), jobKey),
  ])
  setToolFolders(env, folder)
  const remembered = rememberedFile(folder, `${jobKey}-${env['GITHUB_ACTION'] ?? ''}`)
  const identity = gitHubIdentity(env, uniqueOfJob(join(folder, `${JOB_MARK}${jobKey}`)))
  const uses: string[] = []
  const colours = paint(env, true)

  return {
    name: 'github',
    within: 'github',
    // What a cancelled job still runs has five minutes.
    cancelLimit: undefined,
    env,
    identity,
    folder,
    downloads: downloadFolder(folder),
    // Jobs of one runner share it, where nobody empties RUNNER_TEMP between them.
    jobFolders: () => [{ path: folder, files: [], mark: undefined, changed: Date.now() }],
    logsFolder: undefined,
    given: () => gitHubInputs(env),
    group: (title, work) => {
      core.startGroup(title)
      // Behind the group's end it is seen without opening the group.
      return timed(work, colours, line => {
        core.endGroup()
        core.info(`  ${line}`)
      })
    },
    info: message => core.info(message),
    debug: message => {
      if (core.isDebug()) core.debug(message)
      else if (debugIsOn(env)) core.info(message)
    },
    warning: message => core.warning(message),
    error: message => core.error(message),
    print: text => core.info(text),
    mask: secret => core.setSecret(secret),
    remember: async use => {
      uses.push(use)
      rememberUse(remembered, use)
      core.saveState('uses', JSON.stringify(uses))
    },
    // Each step that uses the action has state of its own. The file holds the same, should the runner have lost it.
    uses: async () => {
      const its = [...savedUses(core.getState('uses')).reverse(), ...rememberedUses(remembered)]
      return [...new Set([...usesByHand(folder, identity.job), ...its])]
    },
    chosen: named => latestUse(folder, named, env),
    exportVariables: async variables => {
      for (const [name, value] of Object.entries(variables)) core.exportVariable(name, value)
    },
    setOutputs: async outputs => {
      for (const [name, value] of Object.entries(outputs)) core.setOutput(name, value)
    },
    addPath: async path => core.addPath(path),
    jobStatus: () => {
      const status = env[JOB_STATUS]
      return STATUSES.find(known => known === status)
    },
    keepFiles: async () => {
      // A step of the job uploads them: an action cannot.
    },
    conclude: (title, lines) => core.info([colours.strong(title), ...lines].join('\n')),
    summary: { when: 'always', draws: true },
    showSummary: async ({ markdown }) => {
      try {
        await core.summary.emptyBuffer().addRaw(markdown).write()
      } catch (error) {
        // act and old servers have no GITHUB_STEP_SUMMARY.
        core.debug(messageOf(error))
      }
    },
  }
}

const STATUSES: readonly JobStatus[] = ['success', 'failure', 'cancelled']

/**
 * The input through which post hears how the job went: the runner evaluates the defaults of inputs for post again
 * (its ActionRunner.cs), and no variable says it.
 */
const JOB_STATUS = 'INPUT_JOB-STATUS'

/**
 * The step's inputs by option name. The runner hands an input over as INPUT_NAME: upper case, blanks as underscores,
 * dashes as they are; it only warns of inputs that action.yml does not know, so these are here too, for `parse` to refuse.
 */
export function gitHubInputs(env: Environment): Record<string, Given> {
  const given: Record<string, Given> = {}
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith('INPUT_') || variable === JOB_STATUS) continue
    // An input that is declared and not given arrives as an empty text.
    given[variable.slice('INPUT_'.length).toLowerCase()] = value?.trim() || undefined
  }
  return given
}

/**
 * @param unique random and this job's own: the cells of a matrix share all that GITHUB_* variables say
 */
export function gitHubIdentity(env: Environment, unique: string): Identity {
  const repository = env['GITHUB_REPOSITORY'] ?? 'repository'
  const job = ['GITHUB_RUN_ID', 'GITHUB_RUN_ATTEMPT', 'GITHUB_JOB'].map(name => env[name] ?? '0')
  // A runner runs one job at a time, act several at once: without a runner's name the owner is the job alone.
  const runner = env['ACT'] === 'true' ? undefined : env['RUNNER_NAME']
  // Runners of several repositories on one machine often have one name, the machine's, but each its own folder.
  const place = runner && env['RUNNER_TEMP'] ? `:${dirname(env['RUNNER_TEMP'])}` : ''
  return {
    owner: `${runner || unique}@${hostname()}${place}`,
    job: [repository, ...job, unique].join('/'),
    label: repository.split('/').at(-1) ?? repository,
  }
}

/** What GITHUB_* variables tell apart, short enough for a file's name. */
function jobKeyOf(env: Environment): string {
  const parts = ['GITHUB_REPOSITORY', 'GITHUB_RUN_ID', 'GITHUB_RUN_ATTEMPT', 'GITHUB_JOB'].map(name => env[name] ?? '')
  return createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 12)
}

/**
 * A random text that every step of this job sees alike: the first writes it into the job's folder. RUNNER_TRACKING_ID
 * would do for jobs on a machine, but a container job does not get it.
 */
function uniqueOfJob(file: string): string {
  try {
    writeFileSync(file, randomBytes(4).toString('hex'), { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const unique = readFileSync(file, 'utf8')
  if (!/^[0-9a-f]{8}$/.test(unique)) throw new Problem(`${file} is damaged; remove it`)
  return unique
}

function savedUses(state: string): string[] {
  if (state === '') return []
  const uses: unknown = JSON.parse(state)
  return Array.isArray(uses) ? uses.filter(use => typeof use === 'string') : []
}
