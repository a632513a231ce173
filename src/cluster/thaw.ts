import { thawContainers } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { containerImages } from '../engine/images.ts'

/** How long the engine may take to remove containers before something may be frozen in them, in milliseconds: it takes well under a second. */
const PATIENCE = 2000

/** How long a look at what is frozen may take, in milliseconds. */
const LIMIT = 20_000

/**
 * Lets what is frozen in nodes run while they are being removed, where that takes long. On the first version of cgroups runc freezes a pod's
 * processes for a moment while it starts them; a node that is killed in that moment leaves them frozen, the signal does not reach
 * them, and the engine waits for them for ever ("did not receive an exit event"). On the second version frozen processes die.
 *
 * @param containers the nodes' whole ids
 * @param patience milliseconds
 * @returns ends the watch
 */
export function thawLate(docker: Docker, containers: readonly string[], patience = PATIENCE): () => void {
  const thaw = async (): Promise<void> => {
    const image = (await docker.run(containerImages(containers.slice(0, 1)), { timeout: LIMIT })).stdout.trim()
    await docker.run(thawContainers(image, containers), { timeout: LIMIT })
  }
  // What it cannot do is told by the removal, which it is for.
  const timer = setTimeout(() => void thaw().catch(() => {}), patience)
  return () => clearTimeout(timer)
}
