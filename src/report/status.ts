/** What `status` shows: an object for programs, lines for people. Pure. */
import { formatDuration } from '../lib/duration.ts'
import { formatMemory } from '../lib/quantity.ts'

interface NodeStatus {
  readonly name: string
  readonly running: boolean
}

/** What `status --json` prints. A field may be added; what is there keeps its meaning as long as `schema` is 1. */
export interface Status {
  readonly schema: 1
  /** Null for what there is none of, or what does not say. */
  readonly versions: Readonly<
    Record<'kind-in-dind' | 'kind' | 'docker-client' | 'docker-engine' | 'node', string | null>
  >
  /** github, buildkite or terminal. */
  readonly host: string
  readonly engine: {
    readonly address: string
    readonly source: string
    readonly architecture: string
    readonly cpus: number
    /** Bytes. */
    readonly memory: number
    readonly 'cgroup-version': string
    readonly 'storage-driver': string
    /** By how many seconds its clock is ahead of this machine's. */
    readonly 'clock-ahead': number
  }
  readonly clusters: readonly {
    readonly name: string
    readonly owner: string
    readonly job: string
    readonly 'this-job': boolean
    /** ISO 8601, as `expiry`; by the engine's clock. */
    readonly created: string | null
    /** Seconds. */
    readonly age: number | null
    readonly expiry: string | null
    readonly kept: boolean
    /** Why `down --stale` removes it; null where it stays. */
    readonly stale: string | null
    readonly nodes: readonly NodeStatus[]
    /** Its other containers, its networks and volumes. */
    readonly others: readonly string[]
    /** True where something of it is missing: its record, or a node that is not made yet or not there any more. */
    readonly 'half-gone': boolean
  }[]
  /** kind clusters that are not ours. */
  readonly foreign: readonly { readonly name: string; readonly nodes: readonly NodeStatus[] }[]
}

/** The lines for people. */
export function statusLines(status: Status): string[] {
  const { engine, versions, clusters, foreign } = status
  const version = (name: keyof Status['versions']): string => versions[name] ?? 'none'
  const ahead = engine['clock-ahead']
  const clock =
    Math.abs(ahead) < 5 ? '' : `, its clock ${formatDuration(Math.abs(ahead) * 1000)} ${ahead > 0 ? 'ahead' : 'behind'}`
  return [
    `Docker ${version('docker-engine')} at ${engine.address}, found by ${engine.source}: ${engine.cpus} CPUs, ${formatMemory(engine.memory)}, ${engine.architecture}, ${engine['storage-driver']}, cgroup v${engine['cgroup-version']}${clock}`,
    `kind-in-dind ${version('kind-in-dind')}, kind ${version('kind')}, docker CLI ${version('docker-client')}, Node ${version('node')}, on ${status.host}`,
    ...(clusters.length === 0 ? ['There is no cluster of kind-in-dind on it.'] : clusters.flatMap(clusterLines)),
    ...foreign.map(({ name, nodes }) => `${name}: not one of kind-in-dind; ${nodeText(nodes)}`),
  ]
}

function clusterLines(cluster: Status['clusters'][number]): string[] {
  const { name, nodes, owner, job, age, expiry, kept, stale } = cluster
  const facts = [
    cluster['this-job'] ? "this job's" : undefined,
    kept ? 'kept' : undefined,
    age === null ? undefined : `${formatDuration(Math.max(0, age) * 1000)} old`,
    expiry === null ? undefined : `until ${expiry.replace(/\.\d+Z$/, 'Z')}`,
    cluster['half-gone'] ? 'not whole' : undefined,
    stale === null ? undefined : `${stale}: down --stale removes it`,
  ].filter(fact => fact !== undefined)
  return [`${name}: ${nodeText(nodes)}; ${facts.join(', ')}`, `  of the job ${job} on ${owner}`]
}

function nodeText(nodes: readonly NodeStatus[]): string {
  if (nodes.length === 0) return 'no node'
  const down = nodes.filter(({ running }) => !running).map(({ name }) => name)
  return `${nodes.length} ${nodes.length === 1 ? 'node' : 'nodes'}${down.length === 0 ? ' up' : `, of which are down: ${down.join(', ')}`}`
}
