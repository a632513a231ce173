import { setTimeout as sleep } from 'node:timers/promises'
import { removeContainers } from '../engine/containers.ts'
import { allContainers, type Docker } from '../engine/docker.ts'
import { disconnectNetwork, madeNetworks, networkMembers, networkNamed, removeNetworks } from '../engine/networks.ts'
import {
  clusterContainers,
  clusterNetworks,
  clusterServices,
  clusterVolumes,
  createMark,
  marksOn,
  networksOf,
  recordLabels,
  recordOf,
  recordsOn,
  removeVolumes,
  servicesOf,
} from '../engine/records.ts'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { CommandFailed, type Result, whatItSaid } from '../lib/run.ts'
import { LABEL, type Plan } from '../plan.ts'
import { plannedContainers, removeLateNodes } from './late-nodes.ts'
import type { Holding } from './survey.ts'
import { thawLate } from './thaw.ts'

/** How long a removal may take, in milliseconds: an engine that hangs must not hold up the job's end. */
const LIMIT = 60_000

/** How long one try of a removal may take, in milliseconds: `docker rm` that hangs once may work when it is asked again. */
const TRY_LIMIT = 20_000

/** How long to leave the engine alone before something is tried again, in milliseconds. */
const PAUSE = 250

/** What of a plan a removal needs. */
export type Target = Pick<Plan, 'cluster' | 'use' | 'record' | 'network' | 'networkIsTheUsers' | 'nodes' | 'registry'>

/** The labels of the record that a cluster of this name has on the engine; undefined where there is none. */
export async function findRecord(
  docker: Docker,
  record: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const result = await docker.try(recordLabels(record), { timeout: LIMIT })
  if (result.code === 0) return (JSON.parse(result.stdout) as Record<string, string> | null) ?? {}
  if (/no such volume/i.test(result.stderr)) return undefined
  throw notTold(result)
}

function notTold(result: Result): Problem {
  return new Problem(
    `the engine does not tell what is left of the cluster: ${whatItSaid(result, 3)}; when it answers again, run this again, or leave it to the next job on this engine`,
  )
}

/**
 * Removes a cluster from its engine: nodes and what is beside them with their volumes, networks, and last the record from which
 * all is found, so that a removal that ends half-way is found again. Twice is fine, also at the same time.
 *
 * @param given.container the step's own container, where it may have joined the cluster's network
 * @param given.limit milliseconds that it may take
 * @param given.seen ids of nodes that this use is known to have made, where it is known; with them it is also removed where
 *   somebody has pruned its record (`docker volume prune`, `docker system prune`), which no container uses
 * @param given.cgroupVersion the engine's, where it is known
 * @returns what was removed, for the log; undefined where this use has nothing on the engine (any more)
 * @throws Problem that says what the engine did not remove in time
 */
export async function removeCluster(
  docker: Docker,
  target: Target,
  {
    container,
    limit = LIMIT,
    seen,
    cgroupVersion,
  }: {
    readonly container?: string | undefined
    readonly limit?: number
    readonly seen?: readonly string[] | undefined
    readonly cgroupVersion?: string | undefined
  } = {},
): Promise<string | undefined> {
  const { cluster } = target
  const remover = removing(docker, limit)
  const known = seen ?? []
  const thawing = (ids: readonly string[]): (() => void) =>
    cgroupVersion === '1' && ids.length > 0 ? thawLate(docker, ids) : () => {}
  // What takes longest begins at once: nobody else has nodes of these ids. Force kills: a stop would wait for the node's init to
  // the end of its time-out.
  const begun = remover.begin(known, removeContainers).finally(thawing(known))
  const [record, listed, services] = await Promise.all([
    findRecord(docker, target.record),
    remover.ids(clusterContainers(cluster)),
    remover.ids(clusterServices(cluster)),
  ])
  const isPruned =
    record === undefined &&
    seen !== undefined &&
    (await hasLeft(target.use, [...listed, ...(await begun)], seen, remover))
  if (record?.[LABEL.use] !== target.use && !isPruned) {
    await begun
    // An earlier removal may have been ended between its last two commands.
    if (target.networkIsTheUsers) await docker.try(removeVolumes([markOf(target)]), { timeout: remover.left() })
    return undefined
  }
  const listAgain = async (): Promise<string[]> => [
    ...(await remover.ids(clusterContainers(cluster))),
    ...(await remover.ids(clusterServices(cluster))),
  ]
  const listVolumes = async (): Promise<string[]> =>
    (await remover.ids(clusterVolumes(cluster))).filter(name => name !== target.record)
  const listNetworks = (): Promise<string[]> => ownNetworks(target, remover)
  const someMayCome = new Set([...known, ...listed]).size + services.length < plannedContainers(target).length
  // What else there is is listed meanwhile, unless more may come.
  const [volumes, networks, gone] = await Promise.all([
    someMayCome ? undefined : listVolumes(),
    someMayCome ? undefined : listNetworks(),
    begun,
  ])
  const nodes = [...new Set([...gone, ...listed])]
  const rest = [...nodes, ...services].filter(id => !gone.includes(id))
  await remover.remove(rest, listAgain, removeContainers).finally(thawing(rest))
  const late = someMayCome ? await removeLateNodes(docker, target, remover.left()) : 0
  // Where an earlier post was ended half-way it has left already, and the engine says so.
  if (container !== undefined) {
    await docker.try(disconnectNetwork(target.network, container), { timeout: remover.left() })
  }
  const [network] = await Promise.all([
    removeOwnNetworks(docker, target, networks ?? (await listNetworks()), remover),
    remover.remove(volumes ?? (await listVolumes()), listVolumes, removeVolumes),
  ])
  // The mark goes after the record: who sees the record without it takes this cluster for one that stays.
  const marks = target.networkIsTheUsers ? [markOf(target)] : []
  const listRecord = async (): Promise<string[]> => {
    const still = await remover.ids(recordOf(target))
    return still.length === 0 ? [] : [...still, ...marks]
  }
  await remover.remove([target.record, ...marks], listRecord, removeVolumes)
  const parts = [
    count(nodes.length + late, 'node'),
    ...(services.length > 0 && target.registry !== undefined ? ['its registry'] : []),
    ...(network === 'removed' ? ['its network'] : []),
  ]
  const staying = network === 'stays' ? `; the network ${target.network} stays, others are on it` : ''
  return `${cluster} (${parts.join(', ').replace(/, ([^,]*)$/, ' and $1')}${staying})`
}

/**
 * True where something on the engine is certainly of this use, though its record is gone: what carries its label, or a node that
 * it made. No other has the cluster's name then, which the engine refuses as long as anything has it.
 */
async function hasLeft(
  use: string,
  nodes: readonly string[],
  seen: readonly string[],
  remover: Removing,
): Promise<boolean> {
  if (nodes.some(id => seen.includes(id))) return true
  const labelled = await Promise.all([remover.ids(networksOf(use)), remover.ids(servicesOf(use))])
  return labelled.flat().length > 0
}

/**
 * Begins with what `removeCluster` does first, where a start is cancelled: its nodes are killed and removed. The engine goes on with
 * it when nobody waits any more, and post, which is yet to start, finds the rest.
 */
export async function beginRemoval(docker: Docker, target: Pick<Target, 'cluster' | 'record' | 'use'>): Promise<void> {
  const { ids, left } = removing(docker, LIMIT)
  const [record, nodes] = await Promise.all([findRecord(docker, target.record), ids(clusterContainers(target.cluster))])
  if (record?.[LABEL.use] !== target.use || nodes.length === 0) return
  await docker.try(removeContainers(nodes), { timeout: left() })
}

/** The mark by which a use says that it may be removing its network. */
function markOf({ record }: Pick<Plan, 'record'>): string {
  return `${record}-leaving`
}

/**
 * True where other clusters are on the target's network, or will be. Both sides say what they are about to do before they look:
 * here a mark, then the records of others; there a record, then the marks (`makeNetwork`). So at least one sees the other,
 * and no network goes that another job has seen and not used yet. Others that leave at the same time, which their marks tell,
 * have nothing on it any more: of those each tries to remove it. The marks are read before the records, since they go after them.
 */
async function othersStay(docker: Docker, target: Target, remover: Removing): Promise<boolean> {
  await docker.run(createMark(markOf(target), target.network), { timeout: remover.left() })
  const marks = await remover.ids(marksOn(target.network))
  const records = await remover.ids(recordsOn(target.network))
  return records.some(record => record !== target.record && !marks.includes(markOf({ record })))
}

/**
 * Removes what carries the labels of a use whose record is gone. A network that others are on stays.
 *
 * @returns what was removed; undefined where nothing was
 */
export async function removeThings(docker: Docker, holding: Holding, limit: number): Promise<string | undefined> {
  const remover = removing(docker, limit)
  const containers = [...holding.nodes, ...holding.containers].map(({ id }) => id)
  const still = async (): Promise<string[]> => {
    const there = await remover.ids(allContainers)
    return containers.filter(id => there.includes(id))
  }
  await remover.remove(containers, still, removeContainers)
  const networks: string[] = []
  for (const { id } of holding.networks) {
    if ((await docker.try(removeNetworks([id]), { timeout: remover.left() })).code === 0) networks.push(id)
  }
  const volumes = holding.volumes.map(({ id }) => id)
  if (volumes.length > 0) await docker.run(removeVolumes(volumes), { timeout: remover.left() })
  const removed = [
    count(containers.length, 'container'),
    count(networks.length, 'network'),
    count(volumes.length, 'volume'),
  ].filter(text => !text.startsWith('0 '))
  return removed.length === 0 ? undefined : `${removed.join(', ')} of ${holding.cluster}`
}

function count(number: number, word: string): string {
  return `${number} ${word}${number === 1 ? '' : 's'}`
}

/** Removals under one deadline. */
interface Removing {
  /** Milliseconds to the deadline, at least one. */
  left(): number
  /** What a list of the engine's prints. */
  ids(args: readonly string[]): Promise<string[]>
  /** Tries to remove what may be there. @returns what was removed */
  begin(ids: readonly string[], argv: (ids: readonly string[]) => string[]): Promise<readonly string[]>
  /**
   * Removes what is there. The engine may refuse once (what it has begun to remove for somebody else, it removes only once) or
   * hang once: then what a new list still has is tried again.
   *
   * @throws Problem at the deadline
   */
  remove(
    there: readonly string[],
    list: () => Promise<readonly string[]>,
    argv: (ids: readonly string[]) => string[],
  ): Promise<void>
}

function removing(docker: Docker, limit: number): Removing {
  const deadline = performance.now() + limit
  const left = (): number => Math.max(1, deadline - performance.now())
  const ids = async (args: readonly string[]): Promise<string[]> => {
    const result = await docker.try(args, { timeout: left() })
    if (result.code !== 0) throw notTold(result)
    return result.stdout.split('\n').filter(line => line !== '')
  }
  return {
    left,
    ids,
    begin: async (ids, argv) => {
      if (ids.length === 0) return []
      const tried = await docker.try(argv(ids), { timeout: Math.min(TRY_LIMIT, left()) }).catch(() => undefined)
      return tried?.stdout.split('\n').filter(line => line !== '') ?? []
    },
    remove: async (there, list, argv) => {
      for (let ids = there; ids.length > 0; ids = await list()) {
        let refusal: string
        try {
          const removed = await docker.try(argv(ids), { timeout: Math.min(TRY_LIMIT, left()) })
          if (removed.code === 0) return
          refusal = whatItSaid(removed, 3)
        } catch (error) {
          refusal = messageOf(error)
        }
        if (left() <= PAUSE) {
          throw new Problem(
            `the engine did not remove ${ids.join(', ')} within ${formatDuration(limit)}: ${refusal}; the next job on this engine tries again, and so does docker ${argv(ids).join(' ')}`,
          )
        }
        await sleep(PAUSE)
      }
    },
  }
}

/** The ids of the cluster's networks: its own, or one that the users of several clusters share by its name. */
async function ownNetworks({ cluster, network, networkIsTheUsers }: Target, remover: Removing): Promise<string[]> {
  // By its name too: where somebody pruned it before it had a node, kind has made it anew, without our labels.
  const byName = networkIsTheUsers ? madeNetworks(network) : networkNamed(network)
  const found = await Promise.all([clusterNetworks(cluster), byName].map(remover.ids))
  return [...new Set(found.flat())]
}

/**
 * Removes the cluster's networks. A shared one stays where others are on it, for the last of their clusters to remove. From the
 * cluster's own one, other containers of the job are taken: what they came for is gone.
 */
async function removeOwnNetworks(
  docker: Docker,
  target: Target,
  own: readonly string[],
  remover: Removing,
): Promise<'none' | 'removed' | 'stays'> {
  if (own.length === 0) return 'none'
  if (target.networkIsTheUsers) {
    if (await othersStay(docker, target, remover)) return 'stays'
    const removed = await docker.try(removeNetworks(own), { timeout: remover.left() })
    if (removed.code === 0 || /not found/i.test(removed.stderr)) return 'removed'
    if (/has active endpoints/i.test(removed.stderr)) return 'stays'
    throw new CommandFailed(['docker', ...removeNetworks(own)], removed)
  }
  const emptied = async (): Promise<string[]> => {
    const still = await ownNetworks(target, remover)
    for (const id of still) {
      const members = await docker.try(networkMembers(id), { timeout: remover.left() })
      for (const member of members.stdout.split('\n').filter(line => line !== '')) {
        await docker.try(disconnectNetwork(id, member), { timeout: remover.left() })
      }
    }
    return still
  }
  await remover.remove(own, emptied, removeNetworks)
  return 'removed'
}
