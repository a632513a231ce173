/** What a host (GitHub, Buildkite, a terminal) is to the rest of the program. A leaf. */
import type { Given } from '../lib/given.ts'
import type { ProcessIdentity } from '../lib/process.ts'
import type { When } from '../options.ts'

/** Who is running. It goes into the labels of what is made, so that a later job can tell whose a leftover is. */
export interface Identity {
  /** The runner or agent and its machine: one owner runs one job at a time. */
  readonly owner: string
  /** This job, attempt included: two jobs never share it. */
  readonly job: string
  /** A readable word for derived names, such as the repository's or pipeline's name. */
  readonly label: string
}

export type Environment = Readonly<Record<string, string | undefined>>

/** What a host makes of summaries. */
export interface Summary {
  readonly when: When
  /** True where it draws Mermaid's diagrams. */
  readonly draws: boolean
}

/** The folder of one of this user's jobs on this machine, and what is known of that job. */
export interface JobFolder {
  readonly path: string
  /** What else that job made, beside its folder. */
  readonly files: readonly string[]
  /** What the job wrote into it of itself; undefined where it did not come so far. */
  readonly mark: JobMark | undefined
  /** When anything of it was last changed, in milliseconds since 1970. */
  readonly changed: number
}

/** Whose a folder is, known before there is a plan. */
export interface JobMark extends Pick<Identity, 'owner' | 'job'> {
  /** The process that made the folder: pre. */
  readonly process: ProcessIdentity
}

export type JobStatus = 'success' | 'failure' | 'cancelled'

export interface Host {
  readonly name: 'github' | 'buildkite' | 'terminal'
  /** How long post may take where the job was cancelled, in milliseconds: later it is killed. Undefined where nobody does. */
  readonly cancelLimit: number | undefined
  /** The CI system around it: a command line may run in a job, too. */
  readonly within: Host['name']
  /** The job's environment. Only hosts read process.env. */
  readonly env: Environment
  readonly identity: Identity
  /** The folder of this job's uses: each use has a folder of its own in it. Made by the host, 0700. */
  readonly folder: string
  /** Where this process downloads to, in the job's folder; made when it is needed. What a killed one left goes with the job. */
  readonly downloads: string
  /** The folders that jobs of this user may have left on this machine, this job's own among them. */
  jobFolders(): readonly JobFolder[]
  /** Where exported logs stay when the job's folder goes; undefined where they are to go with it. */
  readonly logsFolder: string | undefined
  /** The options as they were given, by option name; absent ones are undefined. */
  given(): Readonly<Record<string, Given>>

  /** Runs work as a named, timed group of the log. */
  group<T>(title: string, work: () => Promise<T>): Promise<T>
  info(message: string): void
  /** Shows how far something is, in the place of the last such line; only where somebody looks at a terminal. */
  move?(message: string): void
  debug(message: string): void
  warning(message: string): void
  error(message: string): void
  /** Prints what a command was asked for, on stdout. */
  print(text: string): void
  /** Keeps a secret out of everything this job logs from now on. */
  mask(secret: string): void

  /** Notes a use before its first act, so that this host's post finds it. */
  remember(use: string): Promise<void>
  /** The uses that this post is for, the latest first. */
  uses(): Promise<readonly string[]>
  /**
   * The use that a later command of the job is for: the one whose cluster is named, else the latest.
   *
   * @throws Problem where there is none, or none of that name
   */
  chosen(named: string | undefined): string

  /** Gives variables to the later commands of the job. */
  exportVariables(variables: Readonly<Record<string, string>>): Promise<void>
  setOutputs(outputs: Readonly<Record<string, string>>): Promise<void>
  /** Puts a folder in front of PATH for the later commands of the job. */
  addPath(folder: string): Promise<void>
  /** How the job's commands went, for post; undefined where they have not run or nobody says. */
  jobStatus(): JobStatus | undefined
  /** Keeps a folder's files with the job, for people to download, where the host does that by itself; until the signal. */
  keepFiles(folder: string, signal: AbortSignal): Promise<void>
  /** Closes the log with a block that people see without opening anything. */
  conclude(title: string, lines: readonly string[]): void
  /** How this host's summary is shown, where the option `summary` does not say. */
  readonly summary: Summary
  /** Shows a summary where people look first: GitHub's page of the job, Buildkite's page of the build. */
  showSummary(summary: {
    /** Undefined where it did not come so far. */
    readonly cluster: string | undefined
    readonly style: 'success' | 'warning' | 'error'
    readonly markdown: string
  }): Promise<void>
}
