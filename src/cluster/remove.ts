import {
  clusterContainers,
  clusterNetworks,
  type Docker,
  disconnectNetwork,
  recordLabels,
  removeContainers,
  removeNetworks,
  removeVolume,
} from '../engine/docker.ts'
import { Problem } from '../lib/problem.ts'
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
 * Removes a cluster from its engine: nodes with their volumes, networks, and last the record from which all is found,
 * so that a removal that ends half-way is found again. Twice is fine.
 *
 * @returns what was removed, for the log; undefined where this use has nothing on the engine (any more)
 */
export async function removeCluster(docker: Docker, plan: Plan): Promise<string | undefined> {
  const record = await findRecord(docker, plan.record)
  if (record?.[LABEL.use] !== plan.use) return undefined
  const containers = await ids(docker, clusterContainers(plan.cluster))
  // Force kills: a stop would wait for the node's init to the end of its time-out.
  if (containers.length > 0) await docker.run(removeContainers(containers), { timeout: LIMIT })
  const late = containers.length < plannedContainers(plan).length ? await removeLateNodes(docker, plan, LIMIT) : 0
  const networks = await ids(docker, clusterNetworks(plan.cluster))
  if (plan.ownContainer !== undefined) {
    // It is there only if the step had to join; the engine says so otherwise.
    for (const network of networks) await docker.try(disconnectNetwork(network, plan.ownContainer), { timeout: LIMIT })
  }
  if (networks.length > 0) await docker.run(removeNetworks(networks), { timeout: LIMIT })
  await docker.run(removeVolume(plan.record), { timeout: LIMIT })
  const count = containers.length + late
  const nodes = count === 1 ? '1 node' : `${count} nodes`
  return `${plan.cluster} (${nodes}${networks.length === 0 ? '' : ' and its network'})`
}

async function ids(docker: Docker, args: readonly string[]): Promise<string[]> {
  const { stdout } = await docker.run(args, { timeout: LIMIT })
  return stdout.split('\n').filter(line => line !== '')
}
