import type { Command } from '../commands.ts'
import { boolean } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import type { Runner } from '../lib/run.ts'
import { createBuildkiteHost } from './buildkite.ts'
import { type CommandLine, readCommandLine, usage } from './command-line.ts'
import { createGitHubHost } from './github.ts'
import type { Environment, Host } from './host.ts'
import { paint } from './paint.ts'
import { createScreen } from './screen.ts'
import { createTerminalHost } from './terminal.ts'

/** How the program was started: by what runs before or after a job's commands, or from a command line. */
export type Entry = 'pre' | 'post' | 'load' | 'logs' | 'cli'

/** What the program does: each is a story. */
export type Verb = 'pre' | 'post' | 'load' | 'logs' | 'status' | 'down-stale'

export type Opened = { readonly verb: Verb; readonly host: Host } | { readonly verb: 'help'; readonly usage: string }

const VERBS: Readonly<Record<Command['name'], Verb>> = {
  up: 'pre',
  down: 'post',
  load: 'load',
  logs: 'logs',
  status: 'status',
}

/**
 * Finds out which host this is and makes it.
 *
 * @param env process.env itself
 * @param argv the words after the program's name; only a command line has any
 * @param run runs the host's own commands; a cancelled job does not end these
 * @throws Problem where the command line makes no sense or there is no place for the job's folder
 */
export function openHost(
  entry: Entry,
  env: Record<string, string | undefined>,
  argv: readonly string[],
  run: Runner,
): Opened {
  const toStdout = (line: string): void => void process.stdout.write(`${line}\n`)
  if (entry === 'cli') {
    const command = readCommandLine(argv)
    if (command.verb === 'help') return { verb: 'help', usage: usage(command.given['command'] as Command['name']) }
    return { verb: chooseVerb(command.verb, command.given), host: terminal(env, command) }
  }
  switch (hostName(env)) {
    case 'github':
      return { verb: entry, host: createGitHubHost(env) }
    case 'buildkite':
      return { verb: entry, host: createBuildkiteHost(env, run, toStdout) }
    case 'terminal': {
      const command = { verb: entry === 'pre' ? 'up' : entry === 'post' ? 'down' : entry, given: {} } as const
      return { verb: entry, host: terminal(env, command) }
    }
  }
}

function terminal(env: Record<string, string | undefined>, command: CommandLine): Host {
  const { stderr } = process
  const screen = createScreen(
    text => void stderr.write(text),
    () => stderr.columns,
  )
  const toStdout = (text: string): void => void process.stdout.write(text)
  const host = createTerminalHost(
    env,
    command,
    screen.print,
    toStdout,
    paint(env, stderr.isTTY === true),
    hostName(env),
  )
  return stderr.isTTY ? { ...host, move: screen.move } : host
}

/** @throws Problem for a flag that only means something beside another one */
function chooseVerb(verb: Command['name'], given: CommandLine['given']): Verb {
  if (verb !== 'down') return VERBS[verb]
  if (given['stale'] !== undefined && boolean(given['stale'])) return 'down-stale'
  const other = ['docker-host', 'docker-wait'].find(name => given[name] !== undefined)
  if (other !== undefined) throw new Problem(`--${other} goes with --stale; a cluster of yours knows its engine`)
  return 'post'
}

/**
 * Which host started a job's entry. The hooks say it themselves (KIND_IN_DIND_CI), since a Buildkite agent may run
 * in a job of GitHub's, as in tests, and then all of GitHub's variables are there too.
 */
export function hostName(env: Environment): Host['name'] {
  if (env['KIND_IN_DIND_CI'] === 'buildkite') return 'buildkite'
  if (env['GITHUB_ACTIONS'] === 'true') return 'github'
  return env['BUILDKITE'] === 'true' ? 'buildkite' : 'terminal'
}
