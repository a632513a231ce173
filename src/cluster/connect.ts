import type { KubeConfig } from '@kubernetes/client-node'
import { inspectNode } from '../engine/containers.ts'
import { type Docker, engineEnv } from '../engine/docker.ts'
import { connectNetwork, networkMembers } from '../engine/networks.ts'
import { reach, type Way } from '../engine/reach.ts'
import { type Runner, whatItSaid } from '../lib/run.ts'
import type { PortMapping } from '../options.ts'
import type { PublishedPort } from '../outputs.ts'
import type { Plan } from '../plan.ts'
import { getKubeconfig, kindEnv } from './kind.ts'
import { credentials, readKubeconfig, withServer, writeKubeconfig } from './kubeconfig.ts'

/** How the job reaches its cluster. */
export interface Connection {
  readonly kubeconfig: KubeConfig
  readonly server: string
  /** The name or address that got there; it reaches the published ports too. */
  readonly host: string
  readonly ports: readonly PublishedPort[]
  /** True where the step's container is on the cluster's network and reaches containers there, not what the engine publishes. */
  readonly inside: boolean
}

/**
 * Finds the address at which the API server answers this step, and writes the kubeconfig for it and the one for
 * containers on the cluster's network. A step whose container the engine runs joins that network where it must.
 *
 * @param hosts the names and addresses that may reach what the engine publishes, in the order in which they are tried
 * @throws Problem with the table of attempts where none answers
 */
export async function connect(
  plan: Plan,
  kind: string,
  hosts: readonly string[],
  ports: readonly PortMapping[],
  world: {
    readonly docker: Docker
    readonly runner: Runner
    readonly signal: AbortSignal
    readonly info: (message: string) => void
    readonly warning: (message: string) => void
    readonly debug: (message: string) => void
    /** Called before the step's container joins the cluster's network. */
    readonly onJoin: () => void
  },
): Promise<Connection> {
  const env = { ...engineEnv(plan.engine), ...kindEnv(plan) }
  const ask = async (internal: boolean): Promise<KubeConfig> =>
    readKubeconfig((await world.runner.run(getKubeconfig(kind, plan, internal), { env, timeout: KIND_LIMIT })).stdout)
  const node = plan.nodes[0] ?? ''
  const [external, internal, { published, address }] = await Promise.all([
    ask(false),
    ask(true),
    lookAtNode(world.docker, node, plan.network),
  ])
  const port = published.get(`${API_SERVER}/tcp`) ?? serverPort(external)
  const outside: Way = { prepare: async () => {}, routes: hosts.map(host => ({ host, port })) }
  const inside: Way = {
    prepare: () => joinNetwork(plan, world),
    routes: [node, address].filter(host => host !== '').map(host => ({ host, port: API_SERVER })),
  }
  const ways = plan.ownContainer === undefined ? [outside] : [outside, inside]
  const route = await reach(ways, credentials(external), world)
  const isInside = inside.routes.includes(route)

  const server = `https://${route.host.includes(':') ? `[${route.host}]` : route.host}:${route.port}`
  const kubeconfig = withServer(external, server)
  writeKubeconfig(plan.kubeconfig, kubeconfig)
  writeKubeconfig(plan.internalKubeconfig, internal)
  return {
    kubeconfig,
    server,
    host: route.host,
    inside: isInside,
    ports: ports.flatMap(({ node, protocol }) => {
      const outer = isInside ? node : published.get(`${node}/${protocol.toLowerCase()}`)
      return outer === undefined ? [] : [{ node, protocol, host: route.host, outer }]
    }),
  }
}

/** How long kind may take to read a kubeconfig out of a node, in milliseconds. */
const KIND_LIMIT = 120_000

/** The port on which kubeadm lets the API server listen in its node. */
const API_SERVER = 6443

async function joinNetwork(
  plan: Plan,
  world: {
    readonly docker: Docker
    readonly info: (message: string) => void
    readonly warning: (message: string) => void
    readonly onJoin: () => void
  },
): Promise<void> {
  const container = plan.ownContainer ?? ''
  const members = await world.docker.run(networkMembers(plan.network))
  if (members.stdout.split('\n').some(id => id !== '' && (id.startsWith(container) || container.startsWith(id)))) return
  world.onJoin()
  const joined = await world.docker.try(connectNetwork(plan.network, container))
  if (joined.code !== 0) {
    // The routes are tried all the same: if none gets there, the table of attempts is the error.
    world.warning(`this step's container cannot join the network ${plan.network}: ${whatItSaid(joined, 3)}`)
    return
  }
  world.info(`This step's container ${container.slice(0, 12)} joined the network ${plan.network} until the job's end`)
}

/** What a node publishes (the engine's port by the node's `port/protocol`), and its address in the cluster's network. */
async function lookAtNode(
  docker: Docker,
  node: string,
  network: string,
): Promise<{ readonly published: ReadonlyMap<string, number>; readonly address: string }> {
  const { ports, networks } = JSON.parse((await docker.run(inspectNode(node))).stdout) as {
    readonly ports: Readonly<Record<string, readonly { readonly HostPort: string }[] | null>> | null
    readonly networks: Readonly<Record<string, { readonly IPAddress: string }>>
  }
  const published = Object.entries(ports ?? {}).flatMap(([port, bindings]) => {
    const first = bindings?.[0]
    return first ? [[port, Number(first.HostPort)] as const] : []
  })
  return { published: new Map(published), address: networks[network]?.IPAddress ?? '' }
}

/** With several control planes the load balancer has the port, and kind's kubeconfig names it. */
function serverPort(kubeconfig: KubeConfig): number {
  return Number(new URL(kubeconfig.getCurrentCluster()?.server ?? 'https://unknown:6443').port)
}
