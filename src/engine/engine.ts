import type { Environment } from '../host/host.ts'
import { ENGINE_VARIABLES, type Engine } from '../plan.ts'
import { ask, type Endpoint } from './ask.ts'
import { noDockerCli } from './docker.ts'
import { findEndpoints, type Surroundings, surroundings } from './find.ts'
import { aroundProxy } from './proxy.ts'
import { waitForEngine } from './wait.ts'

/**
 * Finds the engine and waits until it answers.
 *
 * @param options.dockerWait milliseconds
 * @throws Problem where none answers in time; at once where there is no docker CLI, which waiting would not bring
 */
export async function findEngine(
  options: { readonly dockerHost: string | undefined; readonly dockerWait: number },
  world: {
    readonly env: Environment
    readonly signal: AbortSignal
    readonly info: (message: string) => void
    readonly debug: (message: string) => void
  },
): Promise<Engine> {
  const around = surroundings(world.env)
  if (!hasDockerCli(around)) throw noDockerCli
  const find = (): Promise<readonly Endpoint[]> => findEndpoints(options.dockerHost, around)
  const engine = await waitForEngine(find, options.dockerWait, { ...world, resolve: around.resolve })
  return { ...engine, aroundProxy: aroundProxy(world.env, engineNames(engine)) }
}

/** Why an engine that was found does not answer any more, as a sentence; undefined where it does. */
export async function whyGone(
  engine: Pick<Engine, 'address' | 'env' | 'source' | 'exported'>,
): Promise<string | undefined> {
  const answer = await ask(engine, '/version')
  if (answer.ok) return undefined
  const { met, advice } = answer.refusal
  return `the engine at ${engine.address} is gone: it ${met} now, and has answered before; ${advice}`
}

/** Whether a program called docker is on PATH; true where nobody says what is on it. */
export function hasDockerCli({ env, exists }: Pick<Surroundings, 'env' | 'exists'>): boolean {
  const path = env['PATH']
  return path === undefined || path.split(':').some(folder => folder !== '' && exists(`${folder}/docker`))
}

/** The names by which the engine is reached. */
function engineNames({ hostname, addresses }: Pick<Engine, 'hostname' | 'addresses'>): string[] {
  return hostname === undefined ? [] : [hostname, ...addresses]
}

/** A name with what it resolves to, which may be nothing. */
export async function resolved(
  name: string,
): Promise<{ readonly name: string; readonly addresses: readonly string[] }> {
  return { name, addresses: await surroundings({}).resolve(name) }
}

/**
 * The variables by which later commands of the job find the same engine. They are a set: one that this engine does not
 * want and the job has is made empty, which every Docker client takes as unset.
 */
export function engineExports(engine: Pick<Engine, 'env' | 'exported'>, env: Environment): Record<string, string> {
  if (!engine.exported) return {}
  const wanted = ENGINE_VARIABLES.filter(name => engine.env[name] !== undefined || env[name])
  return Object.fromEntries(wanted.map(name => [name, engine.env[name] ?? '']))
}
