/** `act`, which plays GitHub's runner: on a copy of this working tree, with a machine of its own to look at. */
import { accessSync, constants, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { createRunner, type Runner } from '../../src/lib/run.ts'

/** A step as it ended. */
export interface ActStep {
  readonly stage: 'Main' | 'Post'
  /** What it runs: `./`, or a script's text. */
  readonly step: string
  readonly result: string
}

/** A job of a run; each cell of a matrix is one. */
export interface ActJob {
  /** As act calls it: the workflow's name and the job's, with a number in a matrix. */
  readonly name: string
  readonly result: string | undefined
  /** In the order in which they ended; the runner's own first and last step are left out. */
  readonly steps: readonly ActStep[]
  /** What the step `uses: ./` set. */
  readonly outputs: Readonly<Record<string, string>>
}

export interface ActRun {
  /** act's exit code. */
  readonly code: number
  readonly jobs: readonly ActJob[]
  /** The whole log in order: what steps printed, and act's own lines. */
  readonly lines: readonly string[]
  /** All of it for people, to show when a test fails. */
  readonly log: string
}

export interface ActPlace {
  /** A copy of this working tree with dist/, committed, for workflows to be changed in. */
  readonly tree: string
  /** @param workflow a path in the tree */
  run(workflow: string): Promise<ActRun>
  remove(): void
}

/**
 * Makes a place for runs of act. A job finds there on PATH only what `programs` names: neither kind nor kubectl, whatever
 * the machine has; its home is the place's own.
 *
 * @param given.act act's path
 * @param given.engine the engine's address as DOCKER_HOST names it
 * @param given.programs by name, each a path or a name to look up on PATH
 * @param given.variables the repository's variables: the `vars` of a workflow
 */
export async function createActPlace(given: {
  readonly act: string
  readonly engine: string
  readonly programs: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
}): Promise<ActPlace> {
  const folder = mkdtempSync(join(tmpdir(), 'act-'))
  const tree = join(folder, 'tree')
  const bin = join(folder, 'bin')
  for (const path of [tree, bin, join(folder, 'home'), join(folder, 'tmp')]) mkdirSync(path)
  for (const [name, program] of Object.entries(given.programs)) symlinkSync(lookUp(program), join(bin, name))
  await copyWorkingTree(tree, createRunner({ env: process.env }))

  const runner = createRunner({
    env: { PATH: bin, HOME: join(folder, 'home'), TMPDIR: join(folder, 'tmp'), DOCKER_HOST: given.engine },
  })
  const variables = Object.entries(given.variables).flatMap(([name, value]) => ['--var', `${name}=${value}`])
  return {
    tree,
    run: async workflow => {
      const { code, stdout, stderr } = await runner.try(
        [
          lookUp(given.act),
          'push',
          ...['--workflows', workflow, '--json', '--rm'],
          // For jobs without `container:`: on the machine itself.
          ...['--platform', 'ubuntu-latest=-self-hosted', '--concurrent-jobs', '4'],
          ...['--pull=false', '--action-offline-mode', '--no-cache-server'],
          ...['--action-cache-path', join(folder, 'cache')],
          ...variables,
        ],
        { cwd: tree, timeout: 5 * 60_000 },
      )
      return { code, ...readLog(`${stdout}\n${stderr}`) }
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** @returns the path of a program, which is a path already or a name on PATH */
export function lookUp(program: string): string {
  if (program.includes('/')) return program
  for (const folder of (process.env['PATH'] ?? '').split(delimiter)) {
    const path = join(folder, program)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this one.
    }
  }
  throw new Error(`there is no ${program} on PATH`)
}

/** Copies what is or may be committed, as it is now, and dist/, and commits it: act wants a repository. */
async function copyWorkingTree(tree: string, runner: Runner): Promise<void> {
  const root = join(import.meta.dirname, '../..')
  const git = async (cwd: string, ...args: string[]): Promise<string> =>
    (await runner.run(['git', ...args], { cwd })).stdout
  if (!existsSync(join(root, 'dist/main.js'))) throw new Error('there is no dist/ to run: npm run build makes it')
  const files = (await git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard')).split('\0')
  for (const file of new Set([...files, 'dist'])) {
    if (file !== '' && existsSync(join(root, file))) cpSync(join(root, file), join(tree, file), { recursive: true })
  }
  await git(tree, 'init', '--quiet')
  await git(tree, 'add', '--all', '--force')
  await git(tree, '-c', 'user.name=test', '-c', 'user.email=test@example.com', 'commit', '--quiet', '--message', 'copy')
}

/** A line of act's JSON log, as far as it is read here. */
interface Entry {
  readonly msg: string
  readonly job?: string
  readonly stage?: 'Main' | 'Post'
  readonly step?: string
  readonly stepResult?: string
  readonly jobResult?: string
  readonly command?: string
  readonly name?: string
  readonly arg?: string
}

/** @param text one JSON object a line, and what act says before and after in plain text */
function readLog(text: string): Omit<ActRun, 'code'> {
  const jobs = new Map<
    string,
    ActJob & { result: string | undefined; steps: ActStep[]; outputs: Record<string, string> }
  >()
  const lines: string[] = []
  const log: string[] = []
  for (const line of text.split('\n').filter(line => line !== '')) {
    const entry = line.startsWith('{') ? (JSON.parse(line) as Entry) : { msg: line }
    const message = entry.msg.trimEnd()
    lines.push(message)
    log.push(entry.job === undefined ? message : `[${entry.job}] ${message}`)
    if (entry.job === undefined) continue
    const job = jobs.get(entry.job) ?? { name: entry.job, result: undefined, steps: [], outputs: {} }
    jobs.set(entry.job, job)
    const { stage, step = '', stepResult, command, name, arg = '' } = entry
    if (stage !== undefined && stepResult !== undefined) job.steps.push({ stage, step, result: stepResult })
    if (command === 'set-output' && step === './' && name !== undefined) job.outputs[name] = arg
    job.result ??= entry.jobResult
  }
  return { jobs: [...jobs.values()], lines, log: log.join('\n') }
}
