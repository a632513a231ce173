/** A job in a container as GitHub's runner runs it: what an action says in the files of commands holds for later steps. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { Signal, Target } from './ends-table.ts'
import { ACTION, type Ended, type Step } from './place.ts'

/** An action.yml, as far as the runner reads it. */
interface Action {
  readonly inputs: Readonly<Record<string, { readonly default?: string }>>
  readonly runs: { readonly main: string; readonly post: string }
}

const readAction = (folder: string): Action =>
  parse(readFileSync(join(import.meta.dirname, '../..', folder, 'action.yml'), 'utf8')) as Action
const action = readAction('.')

/** The runner's folders in a container job. */
const TEMP = '/__w/_temp'
const TOOL_CACHE = '/__t'
const WORKSPACE = '/__w/app/app'

/** The files through which a step's program tells the runner something. */
const COMMAND_FILES = ['GITHUB_ENV', 'GITHUB_PATH', 'GITHUB_OUTPUT', 'GITHUB_STATE', 'GITHUB_STEP_SUMMARY'] as const

/** A step that used the action, as it ended. */
export interface Use extends Ended {
  readonly inputs: Readonly<Record<string, string>>
  readonly outputs: Readonly<Record<string, string>>
  /** What its post gets as STATE_*. */
  readonly state: Readonly<Record<string, string>>
  /** What it adds to the page of the job, in Markdown. */
  readonly summary: string
}

/** A step that uses the action, while it runs. */
export interface RunningUse {
  readonly ended: Promise<Use>
  /** Sends a signal to the action's process, and to no child of it, as the runner does; or to another target. */
  signal(name: Signal, target?: Target): Promise<void>
}

export interface GitHubJob {
  /** What later steps have in their environment beside the image's own. */
  readonly env: Readonly<Record<string, string>>
  /** A step `run: script`. */
  run(script: string, options?: { readonly input?: string }): Promise<Ended>
  /** A step `uses: OWNER/kind-in-dind@v1`; `env` is that step's own. */
  use(inputs: Readonly<Record<string, string>>, env?: Readonly<Record<string, string>>): Promise<Use>
  /** As `use`, without waiting for its end. */
  start(inputs: Readonly<Record<string, string>>, env?: Readonly<Record<string, string>>): RunningUse
  /** A step `uses: OWNER/kind-in-dind/load@v1`, or another sub-action. */
  useSub(folder: 'load' | 'logs', inputs: Readonly<Record<string, string>>): Promise<Use>
  /** What the runner runs for that step when the job ends. */
  post(use: Pick<Use, 'inputs' | 'state'>): Promise<Ended>
}

/**
 * Starts a job.
 *
 * @param given.id tells this job from others of the place
 * @param given.runner whose job it is; each has one of its own, unless it says otherwise. It empties its folder of temporary files
 *   before each (TempDirectoryManager in its source)
 * @param given.user who its steps run as
 * @param given.onLine sees each line that a step prints, as it comes
 */
export async function startGitHubJob(
  place: Step,
  given: {
    readonly id: string
    readonly runner?: string
    readonly user?: string
    readonly onLine?: (line: string) => void
  },
): Promise<GitHubJob> {
  const { id, runner = id, user = 'root', onLine = () => {} } = given
  const temp = `${TEMP}/${runner}`
  const commands = `${temp}/_runner_file_commands`
  const folders = [TOOL_CACHE, WORKSPACE, temp, commands]
  const made = await place.run(['sh', '-c', 'rm -rf "$1"; shift; install -d "$@"', 'sh', temp, '-o', user, ...folders])
  if (made.code !== 0) throw new Error(made.log)
  const node = (await place.run(['sh', '-c', 'command -v node'])).stdout.trim()

  const env: Record<string, string> = {
    PATH: (await place.run(['printenv', 'PATH'], { user })).stdout.trim(),
    ...place.variables,
    ...{
      CI: 'true',
      GITHUB_ACTIONS: 'true',
      GITHUB_REPOSITORY: 'owner/app',
      GITHUB_JOB: id,
      GITHUB_WORKSPACE: WORKSPACE,
    },
    ...{ GITHUB_RUN_ID: '9001', GITHUB_RUN_ATTEMPT: '1', RUNNER_NAME: `runner-of-${runner}`, RUNNER_OS: 'Linux' },
    ...{ RUNNER_TEMP: temp, RUNNER_TOOL_CACHE: TOOL_CACHE },
  }
  let steps = 0
  /** What the runner's expression job.status says. */
  let status: 'success' | 'failure' = 'success'
  const noted = <T extends Ended>(ended: T): T => {
    if (ended.code !== 0) status = 'failure'
    return ended
  }

  /** Runs a program of the action as one step; `files` are its files of commands when it has ended, in their order. */
  async function runAction(
    key: string,
    program: string,
    own: Readonly<Record<string, string>>,
  ): Promise<{ ended: Ended; files: readonly string[] }> {
    const files = COMMAND_FILES.map(name => `${commands}/${name.toLowerCase()}_${id}_${key}`)
    await place.run(['touch', ...files], { user })
    const named = Object.fromEntries(COMMAND_FILES.map((name, index) => [name, files[index] ?? '']))
    // Without a shell around it: dash drops variables with dashes in their names, as inputs have them.
    const ended = await place.run([node, `${ACTION}/${program}`], {
      ...{ user, onLine },
      env: { ...env, GITHUB_ACTION: '__owner_kind-in-dind', ...named, ...own },
    })
    const said = await place.run(['sh', '-c', `for file; do cat "$file"; printf '\\0'; done`, 'sh', ...files], { user })
    return { ended, files: said.stdout.split('\0') }
  }

  /** The runner hands over every input that action.yml has: with its default, or empty. */
  function inputVariables(inputs: Readonly<Record<string, string>>, of = action): Record<string, string> {
    const declared = Object.entries(of.inputs).map(([name, input]) => [name, evaluated(input.default ?? '')] as const)
    const all = Object.entries({ ...Object.fromEntries(declared), ...inputs })
    return Object.fromEntries(all.map(([name, value]) => [`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`, value]))
  }

  /** The one expression in our defaults. */
  function evaluated(value: string): string {
    return value.replace(/^\$\{\{ job\.status \}\}$/, status)
  }

  /** What a step said in its files holds for the later ones. */
  function takeOver(
    inputs: Readonly<Record<string, string>>,
    {
      ended,
      files: [variables = '', path = '', outputs = '', state = '', summary = ''],
    }: Awaited<ReturnType<typeof runAction>>,
  ): Use {
    Object.assign(env, readAssignments(variables))
    for (const folder of path.split('\n').filter(line => line !== '')) env['PATH'] = `${folder}:${env['PATH']}`
    return { ...noted(ended), inputs, outputs: readAssignments(outputs), state: readAssignments(state), summary }
  }

  function start(inputs: Readonly<Record<string, string>>, own: Readonly<Record<string, string>> = {}): RunningUse {
    const key = `${++steps}`
    const running = runAction(key, action.runs.main, { ...inputVariables(inputs), ...own })
    return {
      ended: running.then(after => takeOver(inputs, after)),
      signal: (name, target) => signalProgram(place, action.runs.main, name, { target, job: id }),
    }
  }

  return {
    env,
    run: async (script, options = {}) =>
      noted(await place.run(['bash', '-e', '-c', script], { user, env, onLine, ...options })),
    use: (inputs, own) => start(inputs, own).ended,
    start,
    useSub: async (folder, inputs) => {
      const sub = readAction(folder)
      const program = join(folder, sub.runs.main)
      return takeOver(inputs, await runAction(`${++steps}`, program, inputVariables(inputs, sub)))
    },
    post: async ({ inputs, state }) => {
      const saved = Object.entries(state).map(([name, value]) => [`STATE_${name}`, value])
      const own = { ...inputVariables(inputs), ...Object.fromEntries(saved) }
      return (await runAction(`${++steps}`, action.runs.post, own)).ended
    },
  }
}

/**
 * Signals a program of the action, where it runs in the step.
 *
 * @param program as action.yml names it
 * @param given.job whose it is, where several are under way; what runs alone otherwise
 * @throws Error where there is nothing to signal
 */
export async function signalProgram(
  place: Step,
  program: string,
  name: Signal,
  { target = 'pre', job = '' }: { readonly target?: Target | undefined; readonly job?: string } = {},
): Promise<void> {
  const script = `pid=
    for each in $(grep --files-with-matches --null-data -xFf - /proc/[0-9]*/cmdline | cut -d/ -f3); do
      [ -n "$4" ] && ! grep --quiet --null-data -xF "GITHUB_JOB=$4" "/proc/$each/environ" || pid+=\${pid:+ }$each
    done
    case $pid in
      '') echo "no $1 runs" >&2; exit 1 ;;
      *' '*) echo "several $1 run: $pid" >&2; exit 1 ;;
    esac
    case $3 in
      pre) kill -s "$2" "$pid" ;;
      group) kill -s "$2" -- "-$(cut -d' ' -f5 "/proc/$pid/stat")" ;;
      children)
        children=$(grep --files-with-matches --line-regexp "PPid:.$pid" /proc/[0-9]*/status 2>/dev/null | cut -d/ -f3)
        [ -n "$children" ] || { echo "$1 has no children" >&2; exit 1; }
        # One may end by itself meanwhile.
        kill -s "$2" $children || true ;;
    esac`
  // The path comes on stdin, so that nothing else has it on its command line.
  const { code, log } = await place.run(['bash', '-c', script, 'bash', program, name.slice(3), target, job], {
    input: `${ACTION}/${program}`,
  })
  if (code !== 0) throw new Error(log)
}

/**
 * Reads a file of commands as the runner does: lines of `name=value`, and `name<<word` with the value in the lines up to
 * that word. See "Workflow commands" in GitHub's documentation.
 */
function readAssignments(text: string): Record<string, string> {
  const assignments: Record<string, string> = {}
  const lines = text.split('\n')
  for (let line = lines.shift(); line !== undefined; line = lines.shift()) {
    if (line === '') continue
    const [, name = '', separator, rest = ''] = /^(.*?)(=|<<)(.*)$/.exec(line) ?? []
    if (name === '') throw new Error(`the runner makes nothing of ${JSON.stringify(line)}`)
    if (separator === '=') {
      assignments[name] = rest
      continue
    }
    const end = lines.indexOf(rest)
    if (end === -1) throw new Error(`the value of ${name} does not end with ${rest}`)
    assignments[name] = lines
      .splice(0, end + 1)
      .slice(0, -1)
      .join('\n')
  }
  return assignments
}

/** What GitHub shows with the job: the texts of all errors, or of all warnings, each as the lines that it has. */
export function annotations({ log }: Pick<Ended, 'log'>, kind: 'error' | 'warning' | 'debug'): string[] {
  const start = `::${kind}::`
  return log
    .split('\n')
    .filter(line => line.startsWith(start))
    .map(line => line.slice(start.length).replaceAll('%0A', '\n').replaceAll('%25', '%'))
}
