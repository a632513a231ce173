/** `buildkite-agent bootstrap`: runs a job on this machine as the agent does, in folders of its own to look at. */
import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRunner } from '../../src/lib/run.ts'
import { lookUp } from './act.ts'
import type { Signal, Target } from './ends-table.ts'

const ROOT = join(import.meta.dirname, '../..')

/** A path in a checkout: a plugin that is part of the repository starts with a dot. */
export const PLUGIN = './plugin'

/** What every job finds on PATH; neither kind nor kubectl, whatever the machine has. */
const PROGRAMS = ['bash', 'sh', 'env', 'cat', 'curl', 'dirname', 'git', 'mktemp', 'rm']

/** The checkouts of the agent. */
const CHECKOUTS = ['with-hook', 'without-hook']

/** The folders in which a job must leave nothing. */
const WATCHED = ['home', 'tmp', 'builds', 'plugins', ...CHECKOUTS]

export interface Job {
  /** Tells this job from others, in its cluster's name too. */
  readonly pipeline: string
  /** As the pipeline has them, each a mapping of one plugin to its configuration. */
  readonly plugins: readonly unknown[]
  readonly command: string
  /** Whether the repository has the example's own hook, which builds its image. */
  readonly hook?: boolean
  readonly env?: Readonly<Record<string, string>>
}

export interface JobRun {
  /** The exit code; null where a signal ended it. */
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
  /** All that the job's log shows. */
  readonly log: string
}

export interface RunningJob {
  readonly id: string
  readonly ended: Promise<JobRun>
  /** As `ended`, but not waiting for what a killed job left and still writes to its log. */
  readonly exited: Promise<JobRun>
  /** Cancels it as the agent does. */
  cancel(): void
  /** Resolves when its log has something; it may have it already. */
  printed(pattern: RegExp): Promise<void>
  /** Sends a signal to a part of the job, `all` is every process of it. @throws Error where there is nothing to signal */
  signal(name: Signal, target: Target | 'all'): void
}

export interface BuildkiteAgent {
  start(job: Job): RunningJob
  /**
   * The steps of a pipeline as the agent uploads them, with variables put in and plugins in a list.
   *
   * @param file a path in the repository
   */
  pipeline(file: string): Promise<readonly Step[]>
  /**
   * Makes a further plugin part of the repositories.
   *
   * @param hooks bash, by the hook's name
   * @returns the plugin as a step names it
   */
  addPlugin(name: string, hooks: Readonly<Record<string, string>>): string
  /** The command lines of all processes on this machine that its jobs started and that still run. */
  processes(): readonly string[]
  /** What jobs left in the folders of the agent, of the checkouts, of temporary files and of the user. */
  files(): readonly string[]
  remove(): void
}

export interface Step {
  readonly label: string
  readonly command: string
  readonly matrix?: readonly string[]
  readonly plugins: readonly Readonly<Record<string, Readonly<Record<string, unknown>>>>[]
}

/**
 * Makes an agent with two checkouts of imagined repositories, with the plugin and the examples; one has the examples' hook.
 *
 * @param given.agent buildkite-agent's path
 * @param given.engine the engine's address as DOCKER_HOST names it
 * @param given.endpoint Buildkite's API
 * @param given.programs more programs for jobs, by name, each a path or a name to look up on PATH
 * @param given.dockerPlugins plugins of the docker CLI, by name, likewise
 * @param given.variables of every job
 * @param given.nodeDigest the sha256 that hooks/find-node takes for that of the Node which it pins; undefined for the real one
 */
export function createBuildkiteAgent(given: {
  readonly agent: string
  readonly engine: string
  readonly endpoint: string
  readonly programs: Readonly<Record<string, string>>
  readonly dockerPlugins: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
  readonly nodeDigest?: string | undefined
}): BuildkiteAgent {
  const folder = mkdtempSync(join(tmpdir(), 'buildkite-'))
  const inFolder = (name: string): string => join(folder, name)
  for (const name of ['bin', 'cache', ...WATCHED]) mkdirSync(inFolder(name))
  // The agent makes it for its own files and leaves it.
  mkdirSync(join(folder, 'tmp/buildkite-agent-hook-wrapper'))
  if (!existsSync(join(ROOT, 'dist/main.js'))) throw new Error('there is no dist/ to run: npm run build makes it')
  const copy = (from: string, ...to: string[]): void =>
    cpSync(join(ROOT, from), join(folder, ...to), { recursive: true })
  for (const checkout of CHECKOUTS) {
    for (const part of ['hooks', 'dist', 'plugin.yml']) copy(part, checkout, PLUGIN, part)
    copy('examples', checkout, 'examples')
    if (given.nodeDigest !== undefined) {
      const finder = join(folder, checkout, PLUGIN, 'hooks/find-node')
      writeFileSync(finder, readFileSync(finder, 'utf8').replace(/[0-9a-f]{64}/g, given.nodeDigest))
    }
  }
  copy('examples/buildkite/hooks', 'with-hook/.buildkite/hooks')
  const programs = { ...Object.fromEntries(PROGRAMS.map(name => [name, name])), ...given.programs }
  for (const [name, program] of Object.entries({ ...programs, 'buildkite-agent': given.agent })) {
    symlinkSync(lookUp(program), join(folder, 'bin', name))
  }
  const dockerPlugins = join(folder, 'home/.docker/cli-plugins')
  mkdirSync(dockerPlugins, { recursive: true })
  for (const [name, program] of Object.entries(given.dockerPlugins)) {
    symlinkSync(lookUp(program), join(dockerPlugins, `docker-${name}`))
  }

  const env = {
    PATH: inFolder('bin'),
    HOME: inFolder('home'),
    TMPDIR: inFolder('tmp'),
    // Tools stay for later jobs, and so does what kubectl learns of a server.
    XDG_CACHE_HOME: inFolder('cache'),
    KUBECACHEDIR: join(folder, 'cache/kubectl'),
    DOCKER_HOST: given.engine,
    CI: 'true',
    BUILDKITE: 'true',
    BUILDKITE_AGENT_ACCESS_TOKEN: 'token',
    BUILDKITE_AGENT_ENDPOINT: given.endpoint,
    BUILDKITE_AGENT_NAME: 'agent-1',
    BUILDKITE_ORGANIZATION_SLUG: 'org',
    BUILDKITE_PIPELINE_PROVIDER: 'git',
    BUILDKITE_REPO: '.',
    BUILDKITE_COMMIT: 'HEAD',
    BUILDKITE_BRANCH: 'main',
    BUILDKITE_BUILD_PATH: inFolder('builds'),
    BUILDKITE_PLUGINS_PATH: inFolder('plugins'),
    BUILDKITE_PLUGIN_VALIDATION: 'false',
    // The checkout is there already.
    BUILDKITE_BOOTSTRAP_PHASES: 'plugin,command',
    BUILDKITE_SHELL: '/bin/bash -e -c',
    ...given.variables,
  }
  let jobs = 0
  return {
    start: job => {
      const id = `job-${process.pid}-${++jobs}`
      const child = spawn('buildkite-agent', ['bootstrap'], {
        cwd: inFolder('builds'),
        env: {
          ...env,
          BUILDKITE_BUILD_CHECKOUT_PATH: inFolder(job.hook ? 'with-hook' : 'without-hook'),
          // Each job is another agent's, unless it says otherwise: one agent runs one job at a time.
          BUILDKITE_AGENT_ID: `agent-of-${id}`,
          BUILDKITE_JOB_ID: id,
          BUILDKITE_PIPELINE_SLUG: job.pipeline,
          BUILDKITE_PLUGINS: JSON.stringify(job.plugins),
          BUILDKITE_COMMAND: job.command,
          ...job.env,
        },
        // The agent gives it a process group, too, and signals that.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      })
      let log = ''
      const waiting = new Set<() => void>()
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding('utf8').on('data', (text: string) => {
          log += text
          for (const look of waiting) look()
        })
      }
      const on = (event: 'exit' | 'close'): Promise<JobRun> =>
        new Promise((resolve, reject) => {
          child.once('error', reject)
          child.once(event, (code, signal) => resolve({ code, signal, log: log.replaceAll('\r\n', '\n') }))
        })
      return {
        id,
        ended: on('close'),
        exited: on('exit'),
        printed: pattern =>
          new Promise(resolve => {
            const look = (): void => {
              if (!pattern.test(log)) return
              waiting.delete(look)
              resolve()
            }
            waiting.add(look)
            look()
          }),
        signal: (name, target) => {
          if (target === 'group') return void process.kill(-(child.pid ?? 0), name)
          const its = jobProcesses(one => one === id)
          const pre = its.filter(({ command }) => command.includes('/dist/main.js'))
          const parents = pre.map(({ pid }) => pid)
          const wanted =
            target === 'all' ? its : target === 'pre' ? pre : its.filter(({ parent }) => parents.includes(parent))
          if (wanted.length === 0) throw new Error(`${id} has no ${target} to signal`)
          for (const { pid } of wanted) signalProcess(pid, name)
        },
        cancel: () => {
          if (child.pid !== undefined) process.kill(-child.pid, 'SIGTERM')
        },
      }
    },
    pipeline: async file => {
      const upload = ['buildkite-agent', 'pipeline', 'upload', '--dry-run', file] as const
      const { stdout } = await createRunner({ env }).run(upload, { cwd: inFolder('with-hook') })
      return (JSON.parse(stdout) as { readonly steps: readonly Step[] }).steps
    },
    addPlugin: (name, hooks) => {
      for (const checkout of CHECKOUTS) {
        mkdirSync(join(folder, checkout, name, 'hooks'), { recursive: true })
        for (const [hook, script] of Object.entries(hooks)) {
          writeFileSync(join(folder, checkout, name, 'hooks', hook), `#!/bin/bash\nset -euo pipefail\n${script}\n`, {
            mode: 0o755,
          })
        }
      }
      return `./${name}`
    },
    processes: () => jobProcesses(id => id.startsWith(`job-${process.pid}-`)).map(({ command }) => command),
    files: () =>
      WATCHED.flatMap(name =>
        readdirSync(inFolder(name), { recursive: true, encoding: 'utf8' }).map(path => join(name, path)),
      ),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The command lines of all processes on this machine that a job started and that still run. */
export function processesOf({ id }: RunningJob): string[] {
  return jobProcesses(one => one === id).map(({ pid, command }) => `${pid} ${command}`)
}

interface Process {
  readonly pid: number
  readonly parent: number
  readonly command: string
}

function jobProcesses(isWanted: (id: string) => boolean): Process[] {
  return readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(pid => {
      try {
        const id = /(?:^|\0)BUILDKITE_JOB_ID=([^\0]*)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1]
        if (id === undefined || !isWanted(id)) return []
        const parent = /^PPid:\s*(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
        return [{ pid: Number(pid), parent: Number(parent), command }]
      } catch {
        // Ended meanwhile, or another user's.
        return []
      }
    })
}

function signalProcess(pid: number, name: Signal): void {
  try {
    process.kill(pid, name)
  } catch {
    // Ended meanwhile.
  }
}
