/** Which address gets a step to what the engine publishes. It is tried, not guessed. */
import https from 'node:https'
import { setTimeout as sleep } from 'node:timers/promises'
import { Problem } from '../lib/problem.ts'
import type { Engine } from '../plan.ts'
import { type Docker, publishedPorts } from './docker.ts'
import { isLoopback } from './find.ts'

/**
 * The engine's address that published ports listen on: loopback where that reaches them, else the engine's own address
 * on the network that the step shares with it.
 */
export function listenAddress(engine: Pick<Engine, 'hostname' | 'addresses'>): string {
  const own = engine.addresses.find(address => !isLoopback(address))
  return engine.hostname === undefined || own === undefined ? '127.0.0.1' : own
}

/** The names and addresses by which the step may get there, the best first; all of them go into the certificate. */
export function candidates(engine: Pick<Engine, 'hostname' | 'addresses'>): string[] {
  return [...new Set([engine.hostname ?? '127.0.0.1', ...engine.addresses])]
}

/** What proves that the API server at an address is ours. PEM texts. */
export interface Credentials {
  readonly ca: string
  readonly cert: string
  readonly key: string
}

export interface Attempt {
  readonly host: string
  readonly port: number
  /** What was met there. */
  readonly met: string
}

/** How long all candidates together may take to answer, in milliseconds. */
const LIMIT = 15_000

/**
 * Finds the first candidate at which the API server answers with a certificate for that very name.
 *
 * @param port the published port
 * @returns the candidate
 * @throws Problem with the table of attempts where none answers in time
 */
export async function reach(
  hosts: readonly string[],
  port: number,
  credentials: Credentials,
  signal: AbortSignal,
  debug: (message: string) => void,
): Promise<string> {
  const deadline = performance.now() + LIMIT
  for (;;) {
    const attempts: Attempt[] = []
    for (const host of hosts) {
      const met = await tryServer(host, port, credentials)
      debug(`https://${host}:${port}: ${met}`)
      if (met === 'answers') return host
      attempts.push({ host, port, met })
    }
    if (performance.now() > deadline) throw unreachable(attempts)
    await sleep(250, undefined, { signal })
  }
}

function unreachable(attempts: readonly Attempt[]): Problem {
  const width = Math.max(...attempts.map(({ host, port }) => `${host}:${port}`.length))
  const table = attempts.map(({ host, port, met }) => `  ${`${host}:${port}`.padEnd(width)}  ${met}`)
  return new Problem(
    `the cluster is up, but this step reaches its API server by none of the addresses that the engine could publish it on:\n${table.join('\n')}`,
  )
}

function tryServer(host: string, port: number, credentials: Credentials): Promise<string> {
  return new Promise(resolve => {
    const request = https.get(
      { host, port, path: '/version', timeout: 3000, agent: false, ...credentials },
      response => {
        response.resume()
        resolve(response.statusCode === 200 ? 'answers' : `answers with status ${response.statusCode}`)
      },
    )
    request.on('timeout', () => request.destroy(new Error('no answer within 3 s')))
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}

/** What a container publishes: the engine's port by the container's `port/protocol` in lower case. */
export async function readPublished(docker: Docker, container: string): Promise<ReadonlyMap<string, number>> {
  const { stdout } = await docker.run(publishedPorts(container))
  const ports = JSON.parse(stdout) as Readonly<Record<string, readonly { HostPort: string }[] | null>> | null
  return new Map(
    Object.entries(ports ?? {}).flatMap(([port, bindings]) => {
      const first = bindings?.[0]
      return first ? [[port, Number(first.HostPort)] as const] : []
    }),
  )
}
