import type { Host } from '../host/host.ts'
import { formatDuration } from '../lib/duration.ts'
import { formatMemory } from '../lib/quantity.ts'
import { type PublishedPort, portAddress, portName } from '../outputs.ts'
import { KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'
import type { Fact, NodeFigures, Report } from './report.ts'

/** Notes what is known as soon as it is decided what will be made. */
export function notePlan(report: Report, plan: Plan, kindVersion: string): void {
  report.cluster = plan.cluster
  report.engine = plan.engine
  const { version, address } = plan.engine
  report.versions.push(
    { what: 'Docker', value: version },
    { what: 'engine', value: address },
    { what: 'kind', value: kindVersion },
    { what: 'node image', value: plan.nodeImage },
  )
}

/** Notes where the job reaches what. */
export function noteAddresses(
  report: Report,
  plan: Plan,
  connection: {
    readonly server: string
    readonly ports: readonly PublishedPort[]
    readonly registry: { readonly engine: string; readonly step: string } | undefined
  },
): void {
  const { registry } = connection
  report.addresses.push(
    { what: 'context', value: `kind-${plan.cluster}` },
    { what: 'API server', value: connection.server },
    ...connection.ports.map(port => ({ what: `NodePort ${portName(port)}`, value: portAddress(port) })),
    ...(registry === undefined
      ? []
      : [
          { what: 'registry, for docker push', value: registry.engine },
          { what: 'registry, for other tools', value: registry.step },
        ]),
    { what: 'kubeconfig', value: plan.kubeconfig },
  )
}

/** Notes what the cluster turned out to be. @param isReady false where it was not waited for */
export function noteReady(
  report: Report,
  ready: { readonly version: string; readonly capacity: readonly NodeFigures[] },
  isReady: boolean,
): void {
  report.ready = isReady
  report.versions.unshift({ what: 'Kubernetes', value: ready.version })
  report.nodes.push(...ready.capacity)
}

/**
 * The closing block of pre's log: the facts that people copy.
 *
 * @param took milliseconds since the process began
 */
export function closingBlock(report: Report, plan: Plan, took: number): { title: string; lines: string[] } {
  const kubernetes = report.versions.find(({ what }) => what === 'Kubernetes')?.value ?? ''
  const state = report.ready ? 'is ready' : 'is up, and was not waited for (wait: 0),'
  const facts: Fact[] = [
    ...report.addresses,
    ...report.nodes.map(({ name, cpus, memory }) => ({
      what: `for pods on ${name}`,
      value: amount({ cpus, memory }),
    })),
    ...(report.engine ? [{ what: 'the engine in all', value: amount(report.engine) }] : []),
    { what: 'look inside', value: 'kubectl get pods -A' },
    { what: '', value: `docker exec -it ${plan.nodes[0]} crictl ps` },
  ]
  const width = Math.max(...facts.map(({ what }) => what.length))
  return {
    title: `Kubernetes ${kubernetes} ${state} after ${formatDuration(took)}`,
    lines: facts.map(({ what, value }) => `  ${what.padEnd(width)}  ${value}`),
  }
}

function amount({ cpus, memory }: { readonly cpus: number; readonly memory: number }): string {
  return `${cpus} ${cpus === 1 ? 'CPU' : 'CPUs'} and ${formatMemory(memory)}`
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
