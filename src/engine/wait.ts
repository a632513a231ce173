import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import type { Engine } from '../plan.ts'
import { ask, certificatePath, type Endpoint, hostPort, type Refusal } from './ask.ts'

/** What we read of the engine's GET /info. */
interface Info {
  readonly ServerVersion: string
  readonly Architecture: string
  readonly NCPU: number
  readonly MemTotal: number
  readonly CgroupVersion?: string
  readonly Driver: string
  readonly RegistryConfig?: { readonly Mirrors?: readonly string[] | null }
  /** RFC 3339. */
  readonly SystemTime?: string
}

/** How long to leave the engine alone between two questions, in milliseconds. */
const PAUSE = 200

/**
 * Waits until one of the endpoints answers, its certificates included.
 *
 * @param find the endpoints, looked for anew each time: a sidecar's name may come late
 * @param limit milliseconds
 * @param resolve the addresses of a name, IPv4 first
 * @throws Problem at once where waiting cannot help, else at the limit; it names each endpoint and what was met there
 */
export async function waitForEngine(
  find: () => Promise<readonly Endpoint[]>,
  limit: number,
  world: {
    readonly resolve: (name: string) => Promise<readonly string[]>
    readonly signal: AbortSignal
    readonly info: (message: string) => void
    readonly debug: (message: string) => void
  },
): Promise<Engine> {
  const started = performance.now()
  let saidWaiting = false
  for (;;) {
    const endpoints = await find()
    const refusals: [Endpoint, Refusal][] = []
    for (const endpoint of endpoints) {
      const answer = await ask<Info>(endpoint, '/info')
      if (answer.ok && typeof answer.value.ServerVersion === 'string') {
        return engineOf(endpoint, answer.value, world.resolve)
      }
      const met = answer.ok ? noEngine : answer.refusal
      const refusal = (endpoints.length === 1 && (await otherPort(endpoint))) || met
      world.debug(`${endpoint.address} ${refusal.met}`)
      refusals.push([endpoint, refusal])
    }
    const hopeless = refusals.every(([, refusal]) => !refusal.wait)
    if (hopeless || performance.now() - started >= limit) throw notThere(refusals, hopeless ? undefined : limit)
    if (!saidWaiting) {
      world.info(`Waiting for the engine: ${refusals.map(([{ address }, { met }]) => `${address} ${met}`).join('; ')}`)
      saidWaiting = true
    }
    await sleep(PAUSE, undefined, { signal: world.signal })
  }
}

/**
 * Looks whether the engine listens at the other one of Docker's two ports: docker:dind takes 2376 alone when it makes
 * certificates and 2375 alone when it does not, so waiting for the wrong one is in vain.
 */
async function otherPort(endpoint: Endpoint): Promise<Refusal | undefined> {
  const tls = certificatePath(endpoint) !== undefined
  const asked = hostPort(endpoint.address, tls)
  if (asked === undefined || (asked.port !== 2375 && asked.port !== 2376)) return undefined
  if (await accepts(asked.host, asked.port)) return undefined
  const port = asked.port === 2375 ? 2376 : 2375
  if (!(await accepts(asked.host, port))) return undefined
  const address = `tcp://${asked.host}:${port}`
  const advice =
    port === 2376
      ? `set DOCKER_HOST=${address}${tls ? '' : " with DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH, or give the sidecar DOCKER_TLS_CERTDIR=''"}`
      : `set DOCKER_HOST=${address}${tls ? ' and unset DOCKER_TLS_VERIFY' : ''}`
  return { wait: false, met: `refuses connections, and port ${port} is open`, advice }
}

/** Whether anything accepts a connection there. */
function accepts(host: string, port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect({ host, port, timeout: 1000 })
    const done = (accepted: boolean): void => {
      socket.destroy()
      resolve(accepted)
    }
    socket.once('connect', () => done(true))
    socket.once('timeout', () => done(false))
    socket.once('error', () => done(false))
  })
}

const noEngine: Refusal = { wait: false, met: 'is no Docker engine, though it answers', advice: 'name another address' }

function notThere(refusals: readonly [Endpoint, Refusal][], limit: number | undefined): Problem {
  const found = refusals.map(([endpoint, refusal]) => {
    const where = endpoint.source === 'docker-host' ? 'docker-host' : `found by ${endpoint.source}`
    return `${endpoint.address} (${where}) ${refusal.met}: ${refusal.advice}`
  })
  const waited = limit === undefined ? '' : ` after ${formatDuration(limit)} (docker-wait)`
  return new Problem(`no Docker engine answers${waited}: ${found.join('; ')}`)
}

async function engineOf(
  endpoint: Endpoint,
  info: Info,
  resolve: (name: string) => Promise<readonly string[]>,
): Promise<Engine> {
  const hostname = hostPort(endpoint.address, certificatePath(endpoint) !== undefined)?.host
  return {
    address: endpoint.address,
    env: endpoint.env,
    source: endpoint.source,
    exported: endpoint.exported,
    aroundProxy: {},
    hostname,
    addresses: hostname === undefined ? [] : await resolve(hostname),
    version: info.ServerVersion,
    architecture: goArchitecture(info.Architecture),
    cpus: info.NCPU,
    memory: info.MemTotal,
    cgroupVersion: info.CgroupVersion ?? '1',
    storageDriver: info.Driver,
    registryMirrors: info.RegistryConfig?.Mirrors ?? [],
    clockAhead: clockAhead(info.SystemTime, Date.now()),
  }
}

/** By how many milliseconds an engine that said this time is ahead of a clock; 0 where it said none. */
export function clockAhead(systemTime: string | undefined, now: number): number {
  const time = Date.parse(systemTime ?? '')
  return Number.isNaN(time) ? 0 : time - now
}

/** The engine reports the kernel's names, images carry Go's. */
function goArchitecture(machine: string): string {
  const names: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64', armv7l: 'arm' }
  return names[machine] ?? machine
}
