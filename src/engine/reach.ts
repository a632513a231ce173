/** Which address gets a step to what the engine publishes. It is tried, not guessed. */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import type { Engine } from '../plan.ts'
import { isLoopback } from './find.ts'

/**
 * The engine's address on which to publish: loopback where that reaches it, else the engine's own address on the network
 * that the step shares with it.
 *
 * @param addresses what the engine's name, or the name that `host` gives it, resolves to; empty for a socket
 */
export function listenAddress(addresses: readonly string[]): string {
  return addresses.find(address => !isLoopback(address)) ?? '127.0.0.1'
}

/**
 * The names and addresses by which the step may get to what the engine publishes, the best first. All of them go into the
 * API server's certificate.
 *
 * @param host what the user says, and what it resolves to
 */
export function candidates(
  engine: Pick<Engine, 'hostname' | 'addresses'>,
  host: { readonly name: string; readonly addresses: readonly string[] } | undefined,
): string[] {
  const given = host === undefined ? [] : [host.name, ...host.addresses]
  return [...new Set([...given, engine.hostname ?? '127.0.0.1', ...engine.addresses])]
}

/** What proves that the API server at an address is ours. PEM texts. */
export interface Credentials {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

/** An address at which the API server may answer. */
export interface Route {
  readonly host: string
  readonly port: number
}

/** Routes that are tried together, once `prepare` has done what they need. */
export interface Way {
  readonly prepare: () => Promise<void>
  readonly routes: readonly Route[]
}

interface Attempt extends Route {
  /** What was met there. */
  readonly met: string
}

/** How long all routes together may take to answer, in milliseconds: the API server runs already. */
const LIMIT = 10_000

/**
 * Finds the first route by which the API server answers with a certificate for that very name.
 *
 * @param ways the next one is prepared only where those before it lead nowhere
 * @throws Problem with the table of attempts where none answers in time
 */
export async function reach(
  ways: readonly Way[],
  credentials: Credentials,
  world: { readonly signal: AbortSignal; readonly debug: (message: string) => void },
): Promise<Route> {
  const deadline = performance.now() + LIMIT
  const prepared = new Set<Way>()
  for (;;) {
    const attempts: Attempt[] = []
    for (const way of ways) {
      if (!prepared.has(way)) await way.prepare()
      prepared.add(way)
      for (const route of way.routes) {
        const met = await tryServer(route, credentials)
        world.debug(`https://${route.host}:${route.port} ${met}`)
        if (met === ANSWERS) return route
        attempts.push({ ...route, met })
      }
    }
    if (performance.now() > deadline) throw unreachable(attempts)
    await sleep(250, undefined, { signal: world.signal })
  }
}

function unreachable(attempts: readonly Attempt[]): Problem {
  const width = Math.max(...attempts.map(({ host, port }) => `${host}:${port}`.length))
  const table = attempts.map(({ host, port, met }) => `  ${`${host}:${port}`.padEnd(width)}  ${met}`)
  return new Problem(
    `the cluster is up, but this step gets to its API server by none of the addresses that could lead there within ${formatDuration(LIMIT)}; a forward of the engine's own port alone is not enough: let the step reach the ports that the engine publishes, or name an address that does with host\n${table.join('\n')}`,
  )
}

const ANSWERS = 'answers'

function tryServer({ host, port }: Route, credentials: Credentials): Promise<string> {
  return new Promise(resolve => {
    const request = https.get(
      { host, port, path: '/version', timeout: 2000, agent: false, ...credentials },
      response => {
        response.resume()
        resolve(response.statusCode === 200 ? ANSWERS : `answers with status ${response.statusCode}`)
      },
    )
    request.on('timeout', () => request.destroy(new Error('does not answer within 2 s')))
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}
