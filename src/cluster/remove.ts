import {
  clusterContainers,
  clusterNetworks,
  clusterServices,
  createMark,
  type Docker,
  disconnectNetwork,
  madeNetworks,
  networkMembers,
  recordLabels,
  recordsOn,
  removeContainers,
  removeNetworks,
  removeVolumes,
} from '../engine/docker.ts'
import { Problem } from '../lib/problem.ts'
import { CommandFailed } from '../lib/run.ts'
import { LABEL, type Plan } from '../plan.ts'
import { plannedContainers, removeLateNodes } from './late-nodes.ts'

/** How long one command of the removal may take, in milliseconds: an engine that hangs must not hold up the job's end. */
const LIMIT = 60_000

/** The labels of the record that a cluster of this name has on the engine; undefined where there is none. */
export async function findRecord(
  docker: Docker,
  record: string,
): Promise<Readonly<Record<string, string>> | undefined> {
  const result = await docker.try(recordLabels(record), { timeout: LIMIT })
  if (result.code === 0) return (JSON.parse(result.stdout) as Record<string, string> | null) ?? {}
  if (/no such volume/i.test(result.stderr)) return undefined
  throw new Problem(
    `the engine does not tell what is left of the cluster: ${result.stderr.trim()}; when it answers again, run this again`,
  )
}

/**
 * Removes a cluster from its engine: nodes and registry with their volumes, networks, and last the record from which all is found,
 * so that a removal that ends half-way is found again. Twice is fine.
 *
 * @param joined true where the step's container may have joined the cluster's network
 * @returns what was removed, for the log; undefined where this use has nothing on the engine (any more)
 */
export async function removeCluster(docker: Docker, plan: Plan, joined: boolean): Promise<string | undefined> {
  const record = await findRecord(docker, plan.record)
  if (record?.[LABEL.use] !== plan.use) return undefined
  const [nodes, services] = await Promise.all([
    ids(docker, clusterContainers(plan.cluster)),
    ids(docker, clusterServices(plan.cluster)),
  ])
  const containers = [...nodes, ...services]
  // Force kills: a stop would wait for the node's init to the end of its time-out.
  if (containers.length > 0) await docker.run(removeContainers(containers), { timeout: LIMIT })
  const late = nodes.length < plannedContainers(plan).length ? await removeLateNodes(docker, plan, LIMIT) : 0
  const networks = await ownNetworks(docker, plan)
  // Where an earlier post was ended half-way it has left already, and the engine says so.
  if (joined) await docker.try(disconnectNetwork(plan.network, plan.ownContainer ?? ''), { timeout: LIMIT })
  const left = networks.length > 0 ? await removeAll(docker, networks, plan) : 0
  const marks = plan.networkIsTheUsers ? [markOf(plan)] : []
  await docker.run(removeVolumes([...marks, plan.record]), { timeout: LIMIT })
  const count = nodes.length + late
  const parts = [
    count === 1 ? '1 node' : `${count} nodes`,
    ...(services.length > 0 ? ['its registry'] : []),
    ...(networks.length > left ? ['its network'] : []),
  ]
  const staying = left > 0 ? `; the network ${plan.network} stays, others are on it` : ''
  return `${plan.cluster} (${parts.join(', ').replace(/, ([^,]*)$/, ' and $1')}${staying})`
}

/** The networks that are this cluster's to remove: its own, or one that the users of several clusters share by its name. */
async function ownNetworks(docker: Docker, plan: Plan): Promise<string[]> {
  const own = await ids(docker, clusterNetworks(plan.cluster))
  if (!plan.networkIsTheUsers) return own
  return [...new Set([...own, ...(await ids(docker, madeNetworks(plan.network)))])]
}

/** The mark by which a use says that it may be removing its network. */
function markOf(plan: Plan): string {
  return `${plan.record}-leaving`
}

/**
 * True where other clusters are on the plan's network, or will be. Both sides say what they are about to do before they look:
 * here a mark, then the records of others; there a record, then the marks (`makeNetwork`). So at least one sees the other,
 * and no network goes that another job has seen and not used yet.
 */
async function othersCome(docker: Docker, plan: Plan): Promise<boolean> {
  await docker.run(createMark(markOf(plan), plan.network), { timeout: LIMIT })
  const records = await ids(docker, recordsOn(plan.network))
  return records.some(record => record !== plan.record)
}

/**
 * Removes networks. One that the user named stays where others are on it, for the last of their clusters to remove; from
 * the cluster's own one, other containers of the job are taken: what they came for is gone.
 *
 * @returns how many stay
 */
async function removeAll(docker: Docker, networks: readonly string[], plan: Plan): Promise<number> {
  if (plan.networkIsTheUsers && (await othersCome(docker, plan))) return networks.length
  const args = removeNetworks(networks)
  const removed = await docker.try(args, { timeout: LIMIT })
  if (removed.code === 0) return 0
  if (!/has active endpoints|not found/i.test(removed.stderr)) throw new CommandFailed(['docker', ...args], removed)
  if (plan.networkIsTheUsers) return networks.length
  const members = await ids(docker, networkMembers(plan.network))
  for (const member of members) await docker.try(disconnectNetwork(plan.network, member), { timeout: LIMIT })
  await docker.run(args, { timeout: LIMIT })
  return 0
}

async function ids(docker: Docker, args: readonly string[]): Promise<string[]> {
  const { stdout } = await docker.run(args, { timeout: LIMIT })
  return stdout.split('\n').filter(line => line !== '')
}
