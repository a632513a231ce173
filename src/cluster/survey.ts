/** What of ours is on an engine, and whose it is. */
import type { Docker } from '../engine/docker.ts'
import { surveyContainers, surveyNetworks, surveyVolumes } from '../engine/records.ts'
import { LABEL, recordName } from '../plan.ts'

/** A container, network or volume. */
export interface Thing {
  /** A volume's is its name. */
  readonly id: string
  readonly name: string
}

export interface Node extends Thing {
  readonly running: boolean
}

/** All that one use of this program has on the engine. */
export interface Holding {
  readonly cluster: string
  readonly use: string
  readonly owner: string
  readonly job: string
  /** Seconds since 1970 by the engine's clock; undefined where no label tells. */
  readonly created: number | undefined
  readonly expiry: number | undefined
  readonly kept: boolean
  /** The name of its network. */
  readonly network: string
  /** The names of the containers that it was to have. */
  readonly planned: readonly string[]
  /** Whether the record is there, from which all is found. */
  readonly hasRecord: boolean
  readonly nodes: readonly Node[]
  /** What else it has, the record left out. */
  readonly containers: readonly Thing[]
  readonly networks: readonly Thing[]
  readonly volumes: readonly Thing[]
}

/** A kind cluster that is not ours. */
export interface Foreign {
  readonly cluster: string
  readonly nodes: readonly Node[]
}

export interface Survey {
  /** The oldest first. */
  readonly holdings: readonly Holding[]
  readonly foreign: readonly Foreign[]
}

/** A line that the engine's lists print. */
export interface Listed {
  readonly id: string
  readonly name: string
  /** Of containers alone, as the two below. */
  readonly state?: string
  /** The networks' names, between commas. */
  readonly networks?: string
  /** The kind cluster whose node it is; empty for others. */
  readonly kind?: string
  /** An absent label is empty. */
  readonly labels: Readonly<Record<string, string>>
}

/** How long one list may take, in milliseconds. */
const LIMIT = 20_000

/** Looks at all that is on the engine. @throws Problem where the engine does not tell in time */
export async function survey(docker: Docker, limit = LIMIT): Promise<Survey> {
  const list = async (args: readonly string[]): Promise<Listed[]> => {
    const { stdout } = await docker.run(args, { timeout: limit })
    return stdout
      .split('\n')
      .filter(line => line !== '')
      .map(line => JSON.parse(line) as Listed)
  }
  const [containers, networks, volumes] = await Promise.all([surveyContainers, surveyNetworks, surveyVolumes].map(list))
  return sortOut({ containers: containers ?? [], networks: networks ?? [], volumes: volumes ?? [] })
}

/**
 * Tells whose each thing is. What carries our labels belongs to the use that they name. Nodes carry kind's label alone: they
 * belong to the use whose record has their cluster's name; where the record is gone, to the one on whose own network they
 * are. All other nodes are somebody else's.
 */
export function sortOut(found: Readonly<Record<'containers' | 'networks' | 'volumes', readonly Listed[]>>): Survey {
  const label = (thing: Listed, key: keyof typeof LABEL): string => thing.labels[LABEL[key]] ?? ''
  const ours = [...found.volumes, ...found.networks, ...found.containers].filter(
    thing => label(thing, 'cluster') !== '',
  )
  const nodes = found.containers.filter(({ kind }) => kind !== undefined && kind !== '')
  const claimed = new Set<Listed>()

  // Where several things tell of one use, the record tells first.
  const isRecord = (thing: Listed): boolean =>
    found.volumes.includes(thing) && thing.name === recordName(label(thing, 'cluster'))
  const uses = new Map<string, Listed>()
  for (const thing of [...ours.filter(isRecord), ...ours]) {
    const key = useKey(label(thing, 'use'), label(thing, 'cluster'))
    if (!uses.has(key)) uses.set(key, thing)
  }
  const holdings = [...uses].map(([key, told]): Holding => {
    const cluster = label(told, 'cluster')
    const own = recordName(cluster)
    const of = (things: readonly Listed[]): Listed[] =>
      things.filter(thing => ours.includes(thing) && useKey(label(thing, 'use'), label(thing, 'cluster')) === key)
    const [containers, networks, volumes] = [of(found.containers), of(found.networks), of(found.volumes)]
    const hasRecord = volumes.some(isRecord)
    const hasOwnNetwork = networks.some(({ name }) => name === own)
    const its = nodes.filter(
      node => node.kind === cluster && (hasRecord || (hasOwnNetwork && (node.networks ?? '').split(',').includes(own))),
    )
    for (const node of its) claimed.add(node)
    return {
      cluster,
      use: label(told, 'use'),
      owner: label(told, 'owner'),
      job: label(told, 'job'),
      created: seconds(label(told, 'created')),
      expiry: seconds(label(told, 'expiry')),
      kept: label(told, 'kept') === 'true',
      network: label(told, 'network') || own,
      planned: label(told, 'containers')
        .split(' ')
        .filter(role => role !== '')
        .map(role => `${cluster}-${role}`),
      hasRecord,
      nodes: its.map(asNode),
      containers: containers.filter(thing => !its.includes(thing)).map(asThing),
      networks: networks.map(asThing),
      volumes: volumes.filter(thing => !isRecord(thing)).map(asThing),
    }
  })
  const others = nodes.filter(node => !claimed.has(node))
  const clusters = [...new Set(others.map(({ kind = '' }) => kind))].sort()
  return {
    holdings: holdings.sort((a, b) => (a.created ?? 0) - (b.created ?? 0) || a.cluster.localeCompare(b.cluster)),
    foreign: clusters.map(cluster => ({ cluster, nodes: others.filter(({ kind }) => kind === cluster).map(asNode) })),
  }
}

/** Two uses of one name are apart by what is random of each. */
const useKey = (use: string, cluster: string): string => `${cluster} ${use}`

const asThing = ({ id, name }: Listed): Thing => ({ id, name })
const asNode = ({ id, name, state }: Listed): Node => ({ id, name, running: state === 'running' })

function seconds(text: string): number | undefined {
  return /^\d+$/.test(text) ? Number(text) : undefined
}
