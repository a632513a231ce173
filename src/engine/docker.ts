/** The docker CLI at one engine: its variables, its deadlines and its refusals. */
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { CommandFailed, CommandMissing, type Result, type Runner, type Running, type RunOptions } from '../lib/run.ts'
import { ENGINE_VARIABLES, type Engine } from '../plan.ts'

/** How long a command may take that does not say otherwise, in milliseconds: an engine that never answers must not hold a job. */
const LIMIT = 120_000

/** The engine had not done in time what it was asked for. */
export class EngineLate extends Problem {
  constructor({ argv, limit }: CommandFailed) {
    const flag = argv.findIndex(word => word.startsWith('-'))
    const command = argv.slice(0, flag === -1 ? 3 : Math.min(flag, 3)).join(' ')
    super(`the engine did not finish ${command} within ${formatDuration(limit)}; look at its log and its load`)
  }
}

/** The docker CLI at one engine. Takes arguments without the leading `docker`. */
export interface Docker {
  run(args: readonly string[], options?: RunOptions): Promise<Result>
  try(args: readonly string[], options?: RunOptions): Promise<Result>
  /** @param options.timeout milliseconds, for all that goes through its pipes */
  start(args: readonly string[], options: { readonly timeout: number }): Running
}

/** The variables that make the docker CLI, and what calls it, talk to this engine and to no other. */
export function engineEnv(engine: Pick<Engine, 'env' | 'aroundProxy'>): Readonly<Record<string, string | undefined>> {
  return { ...Object.fromEntries(ENGINE_VARIABLES.map(name => [name, engine.env[name]])), ...engine.aroundProxy }
}

/** @throws Problem from each call where there is no docker CLI. */
export function dockerAt(engine: Pick<Engine, 'env' | 'aroundProxy'>, runner: Runner): Docker {
  const env = engineEnv(engine)
  const missing = (error: unknown): never => {
    if (error instanceof CommandMissing) throw noDockerCli
    if (error instanceof CommandFailed) agree(error.result)
    if (error instanceof CommandFailed && error.endedBy === 'timeout') throw new EngineLate(error)
    throw error
  }
  return {
    run: (args, options) => runner.run(['docker', ...args], { timeout: LIMIT, ...options, env }).catch(missing),
    try: (args, options) =>
      runner
        .try(['docker', ...args], { timeout: LIMIT, ...options, env })
        .then(agree)
        .catch(missing),
    start: (args, { timeout }) => runner.start(['docker', ...args], { timeout, env }),
  }
}

/**
 * Passes a result on, unless the CLI and the engine have no API version in common.
 *
 * @throws Problem with both versions
 */
function agree(result: Result): Result {
  const apart = /client version (\S+) is too (old|new)\. (?:Minimum|Maximum) supported API version is ([\d.]+)/.exec(
    result.stderr,
  )
  if (result.code === 0 || apart === null) return result
  const [, client, which, engine] = apart
  throw new Problem(
    `the docker CLI speaks API version ${client} and the engine ${which === 'old' ? 'none below' : 'none above'} ${engine}; unset DOCKER_API_VERSION or set it to ${engine}, or install a docker CLI that fits`,
  )
}

/** What every call fails with where there is no docker CLI. */
export const noDockerCli = new Problem(
  'there is no docker CLI on PATH, and Docker publishes no checksums to fetch it by; install it in the step (package docker-cli or docker-ce-cli, or copy /usr/local/bin/docker from the image docker:cli)',
)

/** Prints the client's version, also where no engine answers. */
export const clientVersion: readonly string[] = ['version', '--format={{.Client.Version}}']

/** Prints the ids of all containers on the engine. */
export const allContainers: readonly string[] = ['ps', '--all', '--quiet', '--no-trunc']
