import type { Host } from '../host/host.ts'
import type { PublishedPort } from '../outputs.ts'
import { KIND_CLUSTER_LABEL, type Plan } from '../plan.ts'

/** The closing block of pre's log: the facts that people copy. */
export function tellFacts(
  host: Pick<Host, 'info' | 'warning'>,
  plan: Plan,
  connection: { readonly server: string; readonly ports: readonly PublishedPort[] },
  kubernetesVersion: string,
  isReady: boolean,
): void {
  const state = isReady ? 'is ready' : 'is up, and was not waited for (wait: 0)'
  host.info(`Kubernetes ${kubernetesVersion} ${state}: context kind-${plan.cluster}, ${connection.server}`)
  for (const port of connection.ports) host.info(`NodePort ${port.node} is at ${port.host}:${port.outer}`)
  host.info(`The kubeconfig is ${plan.kubeconfig}`)
  if (plan.keep) tellKept(host, plan)
}

/** Says, before and after the job, that a cluster stays up, and how to remove it. */
export function tellKept(host: Pick<Host, 'warning'>, plan: Plan): void {
  host.warning(
    `keep: the cluster ${plan.cluster} stays up at ${plan.engine.address} after the job; remove it with: ${removalCommand(plan)}`,
  )
}

/** What removes a kept cluster by hand, with nothing but the docker CLI. */
function removalCommand({ cluster, network, record }: Plan): string {
  const nodes = `$(docker ps -aq --filter label=${KIND_CLUSTER_LABEL}=${cluster})`
  return `docker rm -fv ${nodes} && docker network rm ${network} && docker volume rm ${record}`
}
