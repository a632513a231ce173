import { createHash } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import type { Given } from '../lib/given.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Runner } from '../lib/run.ts'
import { latestUse } from './choose-use.ts'
import { debugIsOn } from './debug.ts'
import { exportLines, exportPathLine } from './exports.ts'
import { privateFolder } from './folder.ts'
import type { Environment, Host, Identity, JobStatus } from './host.ts'
import { jobFolderName, jobFolders, markFolder } from './job-folders.ts'
import { paint } from './paint.ts'
import { downloadFolder, rememberedFile, rememberedUses, rememberUse, usesByHand } from './remembered.ts'
import { timed } from './timed.ts'
import { setToolFolders } from './tool-folders.ts'

/** How long the agent's own commands may take, in milliseconds: they are extras, and a cancelled job has seconds. */
const AGENT_TIMEOUT = 5000

/** How long the agent may take to upload logs, in milliseconds. */
const UPLOAD_TIMEOUT = 60_000

/**
 * How long post may take after a cancel, in milliseconds. The agent kills a cancelled job after its cancel-grace-period, 10 s by
 * default; pre's end, the hooks and the start of Node come before post.
 */
const CANCEL_LIMIT = 6000

/**
 * Buildkite's agent, which runs this through hooks/pre-command and hooks/pre-exit.
 *
 * @param env process.env itself: @actions/tool-cache reads what is set in it
 * @param run runs buildkite-agent
 * @param print writes one line to the job's log
 */
export function createBuildkiteHost(
  env: Record<string, string | undefined>,
  run: Runner,
  print: (line: string) => void,
): Host {
  const jobId = buildkiteJob(env)
  const folder = jobFolder(env, jobId)
  const identity = buildkiteIdentity(env)
  markFolder(folder, identity)
  setToolFolders(env, folder)
  const colours = paint(env, true)
  const remembered = rememberedFile(folder, configurationKey(env))
  const debug = (message: string): void => {
    if (debugIsOn(env)) print(message)
  }
  const append = (lines: string): void => {
    const file = env['KIND_IN_DIND_EXPORTS']
    if (!file)
      throw new Problem('KIND_IN_DIND_EXPORTS is not set: hooks/pre-command sets it to the file that it sources')
    appendFileSync(file, lines)
  }
  const agent = async (args: readonly string[], input: string): Promise<void> => {
    try {
      await run.run(['buildkite-agent', ...args], { input, timeout: AGENT_TIMEOUT })
    } catch (error) {
      debug(messageOf(error))
    }
  }

  return {
    name: 'buildkite',
    within: 'buildkite',
    cancelLimit: CANCEL_LIMIT,
    env,
    identity,
    folder,
    downloads: downloadFolder(folder),
    jobFolders: () => jobFolders(dirname(folder)),
    logsFolder: undefined,
    given: () => {
      const configuration = env['BUILDKITE_PLUGIN_CONFIGURATION']
      if (configuration === undefined) {
        warning(
          'The agent handed no plugin configuration over, so the defaults are used. It drops the whole configuration when a value in it is null: remove that value.',
        )
      }
      return pluginConfiguration(configuration)
    },
    group: (title, work) => {
      print(`--- ${title}`)
      return timed(work, colours, print)
    },
    info: print,
    debug,
    warning,
    // Opens the group in which it happened: https://buildkite.com/docs/pipelines/managing-log-output
    error: message => print(`^^^ +++\n${colours.bad(`Error: ${message}`)}`),
    print,
    // Only newer agents know `redactor`; for the others it is a debug line.
    mask: secret => void agent(['redactor', 'add'], secret),
    remember: async use => {
      rememberUse(remembered, use)
      // Another hook of the job may change TMPDIR; pre-exit must look where pre-command was.
      append(exportLines({ KIND_IN_DIND_FOLDER: folder }))
    },
    uses: async () => [...new Set([...usesByHand(folder, identity.job), ...rememberedUses(remembered)])],
    chosen: named => latestUse(folder, named, env),
    exportVariables: async variables => append(exportLines(variables)),
    setOutputs: async () => {
      // The exported KIND_IN_DIND_* variables are all that a later command of the job can read.
    },
    addPath: async path => append(exportPathLine(path)),
    // The last group would hide it.
    conclude: (title, lines) => print([`+++ :kubernetes: ${title}`, ...lines].join('\n')),
    // Annotations are the whole build's: a matrix that is well has nothing to say there.
    summary: { when: 'on-failure', draws: false },
    // One context for each use: another job's annotation, or that of the plugin listed twice, stays.
    showSummary: ({ cluster, style, markdown }) => {
      const context = ['kind-in-dind', jobId, ...(cluster === undefined ? [] : [cluster])].join('-')
      return agent(['annotate', '--style', style, '--context', context], markdown)
    },
    jobStatus: () => buildkiteStatus(env),
    keepFiles: async (path, signal) => {
      try {
        // Below the folder in which the agent runs, so that no name is taken for a pattern but ours.
        await run.run(['buildkite-agent', 'artifact', 'upload', `${basename(path)}/**/*`], {
          cwd: dirname(path),
          timeout: UPLOAD_TIMEOUT,
          signal,
        })
        print(`They are among the artifacts of this job: ${basename(path)}/`)
      } catch (error) {
        warning(`buildkite-agent could not upload them: ${messageOf(error)}`)
      }
    },
  }

  function warning(message: string): void {
    print(colours.warn(`Warning: ${message}`))
  }
}

/**
 * The plugin's configuration as the pipeline's YAML had it.
 *
 * @param json BUILDKITE_PLUGIN_CONFIGURATION; undefined where the agent did not set it, which it does for a whole plugin
 * when there is a null anywhere in its configuration (walkConfigValues in the agent's agent/plugin/plugin.go)
 * @throws Problem where it is not a JSON object
 */
export function pluginConfiguration(json: string | undefined): Record<string, Given> {
  if (json === undefined || json.trim() === '') return {}
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch (error) {
    throw new Problem(`BUILDKITE_PLUGIN_CONFIGURATION is not JSON: ${messageOf(error)}`)
  }
  // A plugin that is named and given nothing.
  if (parsed === null) return {}
  if (typeof parsed !== 'object' || Array.isArray(parsed)) {
    throw new Problem(`the plugin's configuration is not a mapping of options but ${json}; write one option a line`)
  }
  return parsed as Record<string, Given>
}

/**
 * Agents of one machine may share a name (https://github.com/buildkite/agent/pull/2205), and then run several jobs at once; an
 * agent's id is its own, from its start to its end.
 */
export function buildkiteIdentity(env: Environment): Identity {
  const agent = [env['BUILDKITE_AGENT_NAME'], env['BUILDKITE_AGENT_ID']].filter(Boolean).join('/')
  return {
    owner: `${agent || 'agent'}@${hostname()}`,
    job: `${buildkiteJob(env)}/${env['BUILDKITE_RETRY_COUNT'] || '0'}`,
    label: env['BUILDKITE_PIPELINE_SLUG'] || 'buildkite',
  }
}

/**
 * How the command went. An agent ends a job by signalling its process group: the command's exit status is then -1, or
 * what a shell makes of the signal (CommandPhase in the agent's internal/job/executor.go).
 */
export function buildkiteStatus(env: Environment): JobStatus | undefined {
  const status = env['BUILDKITE_COMMAND_EXIT_STATUS']
  if (env['BUILDKITE_JOB_CANCELLED'] === 'true') return 'cancelled'
  if (status === undefined || status === '') return undefined
  if (status === '0') return 'success'
  return ['-1', '129', '130', '131', '143'].includes(status) ? 'cancelled' : 'failure'
}

function buildkiteJob(env: Environment): string {
  return (env['BUILDKITE_JOB_ID'] || 'job').replace(/[^A-Za-z0-9-]/g, '-')
}

/** Right in the folder of temporary files: a job leaves nothing there, and a folder shared by jobs would stay. */
function jobFolder(env: Environment, jobId: string): string {
  const name = jobFolderName(jobId)
  const known = env['KIND_IN_DIND_FOLDER']
  // Not where a job of another agent started this one and its variables came along.
  return privateFolder(known !== undefined && basename(known) === name ? known : join(tmpdir(), name))
}

/** The hooks run once for each time that the plugin is listed; its configuration is all that tells these apart. */
function configurationKey(env: Environment): string {
  return createHash('sha256')
    .update(env['BUILDKITE_PLUGIN_CONFIGURATION'] ?? '')
    .digest('hex')
    .slice(0, 12)
}
