import type { KubeConfig } from '@kubernetes/client-node'
import { type Docker, engineEnv } from '../engine/docker.ts'
import { reach, readPublished } from '../engine/reach.ts'
import type { Runner } from '../lib/run.ts'
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
}

/**
 * Finds the address at which the API server answers this step, and writes the kubeconfig for it and the one for
 * containers on the cluster's network.
 *
 * @param hosts the names and addresses to try, in this order
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
    readonly debug: (message: string) => void
  },
): Promise<Connection> {
  const env = { ...engineEnv(plan.engine), ...kindEnv(plan) }
  const ask = async (internal: boolean): Promise<KubeConfig> =>
    readKubeconfig((await world.runner.run(getKubeconfig(kind, plan, internal), { env })).stdout)
  const [external, internal, published] = await Promise.all([
    ask(false),
    ask(true),
    readPublished(world.docker, plan.nodes[0] ?? ''),
  ])
  const port = published.get('6443/tcp') ?? serverPort(external)
  const host = await reach(hosts, port, credentials(external), world.signal, world.debug)
  const server = `https://${host.includes(':') ? `[${host}]` : host}:${port}`
  const kubeconfig = withServer(external, server)
  writeKubeconfig(plan.kubeconfig, kubeconfig)
  writeKubeconfig(plan.internalKubeconfig, internal)
  return {
    kubeconfig,
    server,
    host,
    ports: ports.flatMap(({ node, protocol }) => {
      const outer = published.get(`${node}/${protocol.toLowerCase()}`)
      return outer === undefined ? [] : [{ node, protocol, host, outer }]
    }),
  }
}

/** With several control planes the load balancer has the port, and kind's kubeconfig names it. */
function serverPort(kubeconfig: KubeConfig): number {
  return Number(new URL(kubeconfig.getCurrentCluster()?.server ?? 'https://unknown:6443').port)
}
