/** The job's own registry: a container on the cluster's network, which pods, the engine and the step each reach by a name. */
import { randomInt } from 'node:crypto'
import http from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { lastLog, REGISTRY_PORT, removeContainers, runRegistry } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { heldRegistryPort } from '../engine/preflight.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { whatItSaid } from '../lib/run.ts'
import { portAddress } from '../outputs.ts'
import type { Plan } from '../plan.ts'
import { hostsFolder, type NodeFile } from './hosts.ts'

/** The distribution registry: https://hub.docker.com/_/registry. */
export const REGISTRY_IMAGE = 'registry:3.0.0'

/** The names by which a registry is reached, each `host:port`. */
export interface RegistryNames {
  /** For docker push, which the engine does: its loopback, for which it asks no TLS. */
  readonly engine: string
  /** For the step's own tools. */
  readonly step: string
  /** For containers on the cluster's network. */
  readonly internal: string
}

/** Ports are picked below those that Kubernetes and the kernel pick from. */
const PORTS = { from: 20_000, to: 30_000 } as const

/** How many picked ports may be somebody else's before that is an error. */
const TRIES = 10

/**
 * Starts the registry. It has one port on all addresses of the engine, which the engine itself cannot pick; so it is picked
 * here, and another where somebody has it.
 *
 * @param wish.port the engine's port; undefined lets one be picked
 * @param wish.listenAddress the engine's address that the step reaches
 * @param wish.taken ports that are asked for elsewhere and not to be picked
 * @returns the port
 * @throws Problem that says who holds the port, or why the engine does not run it
 */
export async function startRegistry(
  docker: Docker,
  plan: Plan,
  wish: { readonly port: number | undefined; readonly listenAddress: string; readonly taken: readonly number[] },
  pick: () => number = () => randomInt(PORTS.from, PORTS.to),
): Promise<number> {
  const name = plan.registry ?? ''
  for (let left = TRIES; ; left--) {
    const port = wish.port ?? pick()
    if (wish.port === undefined && wish.taken.includes(port)) continue
    const started = await docker.try(
      runRegistry(plan, { name, image: REGISTRY_IMAGE, listenAddress: wish.listenAddress, port }),
    )
    if (started.code === 0) return port
    const isHeld = /port is already allocated|address already in use/i.test(started.stderr)
    if (isHeld && wish.port !== undefined) throw await heldRegistryPort(docker, port)
    if (!isHeld || left === 1) {
      throw new Problem(`registry: the engine cannot run it: ${whatItSaid(started, 3)}`)
    }
    // It was created, and only then not started.
    await docker.run(removeContainers([name]))
  }
}

/**
 * The names of a registry that runs.
 *
 * @param port the engine's
 * @param step how the step reaches what the engine publishes; inside where it is on the cluster's network instead
 */
export function registryNames(
  name: string,
  port: number,
  step: { readonly host: string; readonly inside: boolean },
): RegistryNames {
  const internal = `${name}:${REGISTRY_PORT}`
  return {
    engine: `localhost:${port}`,
    step: step.inside ? internal : portAddress({ host: step.host, outer: port }),
    internal,
  }
}

/** What nodes must know, so that pods get an image by each of the names that it was pushed by. */
export function registryHosts(names: RegistryNames): NodeFile[] {
  const loopback = names.engine.replace('localhost', '127.0.0.1')
  // containerd 1 makes nothing of a file without a host in it; the server is where it looks last, and so names its errors.
  const content = `server = "http://${names.internal}"\n\n[host."http://${names.internal}"]\n`
  return [...new Set([names.engine, loopback, names.step, names.internal])].map(name => ({
    path: `${hostsFolder(name)}/hosts.toml`,
    content,
  }))
}

/** How long the registry may take to answer, in milliseconds: it was started before the nodes were ready. */
const LIMIT = 30_000

/** Between two tries, in milliseconds. */
const PAUSE = 100

/**
 * Waits until the registry answers the step.
 *
 * @throws Problem at the limit, with what was met there and what the registry logged last
 */
export async function awaitRegistry(
  docker: Docker,
  plan: Plan,
  address: string,
  signal: AbortSignal,
  limit: number = LIMIT,
): Promise<void> {
  const deadline = performance.now() + limit
  for (;;) {
    signal.throwIfAborted()
    const met = await tryRegistry(address)
    if (met === ANSWERS) return
    if (performance.now() > deadline) {
      const log = await docker.try(lastLog(plan.registry ?? ''))
      const said = `${log.stdout}${log.stderr}`.trim()
      throw new Problem(
        `registry: it does not answer this step at ${address} within ${formatDuration(limit)} (${met})${said === '' ? '' : `; it logged last:\n${said}`}`,
      )
    }
    await sleep(PAUSE, undefined, { signal })
  }
}

const ANSWERS = 'answers'

/** @returns what was met */
function tryRegistry(address: string): Promise<string> {
  return new Promise(resolve => {
    const request = http.get(`http://${address}/v2/`, { timeout: 2000, agent: false }, response => {
      response.resume()
      resolve(response.statusCode === 200 ? ANSWERS : `status ${response.statusCode}`)
    })
    request.on('timeout', () => request.destroy(new Error('no answer within 2 s')))
    request.on('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })
}
