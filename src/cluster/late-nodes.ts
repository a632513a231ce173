import { setTimeout as sleep } from 'node:timers/promises'
import { labelsOf, removeContainers, takeName } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { imageIds } from '../engine/images.ts'
import { formatDuration } from '../lib/duration.ts'
import { whatItSaid } from '../lib/run.ts'
import { KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'

/** How long to leave the engine alone before a name is tried again, in milliseconds. */
const PAUSE = 100

/** The names of the cluster's containers: kind puts a load balancer in front of several control planes, and there may be a registry. */
export function plannedContainers({
  cluster,
  nodes,
  registry,
}: Pick<Plan, 'cluster' | 'nodes' | 'registry'>): readonly string[] {
  const controlPlanes = nodes.filter(name => name.startsWith(`${cluster}-control-plane`))
  const balancer = controlPlanes.length > 1 ? [`${cluster}-external-load-balancer`] : []
  return [...nodes, ...balancer, ...(registry === undefined ? [] : [registry])]
}

/**
 * Removes nodes, and a registry, that come late. The engine goes on creating a container when the client that asked for it is gone, for a
 * second or more: it copies the image's /var into the volume that kind wants there. It lists the container only when that
 * is done, but holds the name from the start (moby's daemon/create.go). So the names are taken here: once one is had,
 * nothing more can come under it. What somebody else has under such a name stays.
 *
 * @param limit milliseconds that it may take
 * @returns how many there were
 * @throws Error where a name is still held at the limit
 */
export async function removeLateNodes(
  docker: Docker,
  plan: Pick<Plan, 'cluster' | 'nodes' | 'registry'>,
  limit: number,
): Promise<number> {
  const deadline = performance.now() + limit
  const left = (): number => Math.max(1, deadline - performance.now())
  const image = (await docker.run(imageIds, { timeout: left() })).stdout.split('\n')[0]
  // Without any image there is none to create a node from.
  if (!image) return 0

  // A container that is still being created has no labels to tell yet.
  const isSomebodyElses = async (name: string): Promise<boolean> => {
    const told = await docker.try(labelsOf(name), { timeout: left() })
    if (told.code !== 0) return false
    const labels = (JSON.parse(told.stdout) as Record<string, string> | null) ?? {}
    return labels[KIND_CLUSTER_LABEL] !== plan.cluster && labels[LABEL.cluster] !== plan.cluster
  }
  const removeLate = async (name: string): Promise<number> => {
    let late = 0
    for (;;) {
      const taken = await docker.try(takeName(name, plan.cluster, image), { timeout: left() })
      const held = /already in use/i.test(taken.stderr)
      if (taken.code !== 0 && !held) throw new Error(`docker create ${name}: ${whatItSaid(taken, 3)}`)
      if (held && (await isSomebodyElses(name))) return late
      const removed = await docker.try(removeContainers([name]), { timeout: left() })
      if (!held) return late
      if (removed.code === 0 && removed.stdout.trim() !== '') late++
      if (performance.now() > deadline)
        throw new Error(`the engine is still creating the container ${name} after ${formatDuration(limit)}`)
      await sleep(PAUSE)
    }
  }
  const counts = await Promise.all(plannedContainers(plan).map(removeLate))
  return counts.reduce((sum, count) => sum + count, 0)
}
