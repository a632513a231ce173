import type { Host } from '../host/host.ts'
import { formatMemory } from '../lib/quantity.ts'
import { type PublishedPort, portAddress, portName } from '../outputs.ts'
import { KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'

/** The closing block of pre's log: the facts that people copy. */
export function tellFacts(
  host: Pick<Host, 'info' | 'warning'>,
  plan: Plan,
  connection: {
    readonly server: string
    readonly ports: readonly PublishedPort[]
    readonly registry: { readonly engine: string; readonly step: string } | undefined
  },
  kubernetesVersion: string,
  capacity: readonly { readonly name: string; readonly cpus: number; readonly memory: number }[],
  isReady: boolean,
): void {
  const state = isReady ? 'is ready' : 'is up, and was not waited for (wait: 0)'
  host.info(`Kubernetes ${kubernetesVersion} ${state}: context kind-${plan.cluster}, ${connection.server}`)
  for (const port of connection.ports) host.info(`NodePort ${portName(port)} is at ${portAddress(port)}`)
  const { registry } = connection
  if (registry !== undefined) {
    host.info(
      `The registry is ${registry.engine} for docker push, and ${registry.step} for other tools of this job; pods pull by both`,
    )
  }
  for (const { name, cpus, memory } of capacity)
    host.info(`Pods on ${name} can get ${cpus} CPUs and ${formatMemory(memory)}`)
  host.info(`The engine has ${plan.engine.cpus} CPUs and ${formatMemory(plan.engine.memory)} in all`)
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
function removalCommand({ cluster, record, registry }: Plan): string {
  const of = (label: string): string => `$(docker ps -aq --filter label=${label}=${cluster})`
  const containers = registry === undefined ? of(KIND_CLUSTER_LABEL) : `${of(KIND_CLUSTER_LABEL)} ${of(LABEL.cluster)}`
  // Prune takes only what carries the label: a network that the user had before stays.
  const network = `docker network prune --force --filter label=${LABEL.cluster}=${cluster}`
  return `docker rm -fv ${containers} && ${network} && docker volume rm ${record}`
}
