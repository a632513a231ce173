import { type ChildProcess, spawn } from 'node:child_process'
import { constants } from 'node:os'
import type { Readable, Writable } from 'node:stream'
import { formatDuration } from './duration.ts'
import { startedByThis } from './process.ts'
import { scrubber } from './scrub.ts'

const scrub = scrubber([])

/** A program and its arguments. Never a shell line: nothing that a user wrote is ever parsed by a shell. */
export type Argv = readonly [program: string, ...rest: string[]]

export interface RunOptions {
  /** Variables over those of the runner; undefined removes one. */
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly cwd?: string
  /** Written to stdin, which is then closed. */
  readonly input?: string
  /** Milliseconds until the command's process group is ended. */
  readonly timeout?: number
  /** Ends the command's process group, as the runner's own does. */
  readonly signal?: AbortSignal
  /** Sees each line of stdout and stderr as it comes. */
  readonly onLine?: (line: string) => void
}

export interface Result {
  /** The exit code; 128 + n where signal n ended it, as a shell tells it. */
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** A command with open pipes. */
export interface Running {
  readonly stdin: Writable
  readonly stdout: Readable
  /** Settles when the command has ended and its pipes are closed; rejects as `Runner.run` does. */
  readonly ended: Promise<Result>
  /** Ends the command's process group. */
  end(): void
}

/** The one way to run a process. A test's fake records argv and answers from a table. */
export interface Runner {
  /**
   * Runs a command to its end.
   *
   * @throws CommandFailed on an exit code other than 0, on a time-out and after an abort; CommandMissing where there is no
   * such program.
   */
  run(argv: Argv, options?: RunOptions): Promise<Result>
  /** As `run`, but an exit code other than 0 is a result. Time-outs, aborts and missing programs still throw. */
  try(argv: Argv, options?: RunOptions): Promise<Result>
  /** Starts a command whose stdin and stdout the caller pipes. Its result's stdout is empty. */
  start(argv: Argv, options?: Omit<RunOptions, 'input'>): Running
}

export class CommandFailed extends Error {
  override readonly name = 'CommandFailed'
  readonly argv: Argv
  readonly result: Result
  /** What ended it, where it did not end by itself. */
  readonly endedBy: 'timeout' | 'abort' | undefined
  /** How long it had, in milliseconds, where that was over. */
  readonly limit: number
  /** @param limit the time-out that ended it, in milliseconds */
  constructor(argv: Argv, result: Result, endedBy?: 'timeout' | 'abort', limit = 0) {
    const late = `did not end within ${formatDuration(limit)}`
    const how = endedBy === 'timeout' ? late : endedBy === 'abort' ? 'was ended' : howItEnded(result)
    const said = lastLines(result.stderr.trim() || result.stdout.trim(), 12)
    super(`${argv.slice(0, 3).join(' ')}: ${how}${said ? `: ${said}` : ''}`)
    this.argv = argv
    this.result = result
    this.endedBy = endedBy
    this.limit = limit
  }
}

export class CommandMissing extends Error {
  override readonly name = 'CommandMissing'
  readonly program: string
  constructor(program: string) {
    super(`${program}: no such program on PATH`)
    this.program = program
  }
}

/** What a failed program said last, or how it ended where it said nothing: others may end our programs too. */
export function whatItSaid(result: Result, count: number): string {
  return lastLines(result.stderr.trim(), count) || `it said nothing, ${howItEnded(result)}`
}

/** For one that this program did not end. A docker CLI that hears a signal exits with 128 + n by itself. */
function howItEnded({ code }: Result): string {
  const signal = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0]
  if (signal === undefined) return `exit code ${code}`
  const whose = signal === 'SIGKILL' ? ', which the kernel sends where memory is short' : ''
  return `ended by ${signal} from outside${whose}`
}

/** The last lines of a text: what a failed program said last is what matters. */
export function lastLines(text: string, count: number): string {
  return text.split('\n').slice(-count).join('\n')
}

/** How long a process group may take to end by itself before it is killed, in milliseconds. */
const GRACE = 500

/** How long a killed process group may take to be gone until nobody waits for it any more, in milliseconds. */
const GONE_LIMIT = 2000

/** A failing program's output is kept to this many characters from its end. */
const KEPT = 4 * 1024 * 1024

/**
 * Makes the runner. Each command gets a process group of its own, so that ending it ends its children too.
 *
 * @param base.env the variables that commands see
 * @param base.signal ends every running command, and fails each later one
 * @param base.debug gets each command with its duration, without what looks like a secret
 */
export function createRunner(base: {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly signal?: AbortSignal
  readonly debug?: (line: string) => void
}): Runner {
  function launch(argv: Argv, options: RunOptions, pipes: boolean): Running {
    const [program, ...rest] = argv
    const started = performance.now()
    const child = spawn(program, rest, {
      cwd: options.cwd,
      env: definedOnly({ ...base.env, ...startedByThis(), ...options.env }),
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let endedBy: 'timeout' | 'abort' | undefined
    let hasEnded = false
    let abandon: NodeJS.Timeout | undefined
    let leave: () => void = () => {}
    const end = (why: 'timeout' | 'abort'): void => {
      endedBy ??= why
      endGroup(child)
      // A process that hangs in the kernel cannot be killed, and one that left the group may keep the pipes.
      if (!hasEnded) abandon ??= setTimeout(() => leave(), GRACE + GONE_LIMIT)
    }
    const onAbort = (): void => end('abort')
    const timer = options.timeout === undefined ? undefined : setTimeout(() => end('timeout'), options.timeout)
    const signals = [base.signal, options.signal].filter(signal => signal !== undefined)
    if (signals.some(signal => signal.aborted)) onAbort()
    for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true })

    const stdout = pipes ? () => '' : collect(child.stdout, options.onLine)
    const stderr = collect(child.stderr, options.onLine)
    // A program that ends before it has read all its input is judged by its exit code, not by EPIPE.
    child.stdin.on('error', () => {})
    if (!pipes) child.stdin.end(options.input ?? '')

    const ended = new Promise<Result>((resolve, reject) => {
      child.once('error', error => {
        reject((error as NodeJS.ErrnoException).code === 'ENOENT' ? new CommandMissing(program) : error)
      })
      const close = (code: number | null, signal: NodeJS.Signals | null): void => {
        const result = { code: code ?? 128 + signalNumber(signal), stdout: stdout(), stderr: stderr() }
        base.debug?.(scrub(`$ ${argv.join(' ')} -> ${result.code} (${formatDuration(performance.now() - started)})`))
        if (endedBy) reject(new CommandFailed(argv, result, endedBy, options.timeout))
        else resolve(result)
      }
      child.once('close', close)
      leave = () => {
        child.removeListener('close', close)
        for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy()
        child.unref()
        close(null, 'SIGKILL')
      }
    }).finally(() => {
      hasEnded = true
      clearTimeout(timer)
      clearTimeout(abandon)
      for (const signal of signals) signal.removeEventListener('abort', onAbort)
    })
    return { stdin: child.stdin, stdout: child.stdout, ended, end: () => end('abort') }
  }

  const runner: Runner = {
    try: (argv, options = {}) => launch(argv, options, false).ended,
    run: async (argv, options = {}) => succeed(argv, await launch(argv, options, false).ended),
    start: (argv, options = {}) => {
      const running = launch(argv, options, true)
      const ended = running.ended.then(result => succeed(argv, result))
      // The caller awaits `ended` when its pipes are done; a failure before that must not count as unhandled.
      ended.catch(() => {})
      return { ...running, ended }
    },
  }
  return runner
}

function succeed(argv: Argv, result: Result): Result {
  if (result.code !== 0) throw new CommandFailed(argv, result)
  return result
}

function endGroup(child: ChildProcess): void {
  const group = child.pid
  if (group === undefined) return
  const send = (signal: NodeJS.Signals): void => {
    try {
      process.kill(-group, signal)
    } catch {
      // The group is gone already.
    }
  }
  send('SIGTERM')
  setTimeout(() => send('SIGKILL'), GRACE).unref()
}

function collect(stream: Readable, onLine?: (line: string) => void): () => string {
  let text = ''
  let line = ''
  stream.setEncoding('utf8')
  stream.on('data', (chunk: string) => {
    text = (text + chunk).slice(-KEPT)
    if (!onLine) return
    const lines = (line + chunk).split(/\r?\n/)
    line = lines.pop() ?? ''
    for (const whole of lines) onLine(whole)
  })
  stream.on('end', () => {
    if (line) onLine?.(line)
  })
  return () => text
}

function definedOnly(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

function signalNumber(signal: NodeJS.Signals | null): number {
  return signal === null ? 0 : constants.signals[signal]
}
