import type { Docker } from '../engine/docker.ts'
import type { Plan } from '../plan.ts'
import { besideOf } from './beside.ts'
import { type Loaded, loadedLine } from './loaded.ts'
import { createProgress, type ProgressLog } from './progress.ts'
import { streamImages, type Wanted } from './stream.ts'

/** Brings images into nodes of a plan's cluster, and tells of each how it came. See `streamImages`. */
export async function loadImages(
  docker: Docker,
  plan: Plan,
  wanted: Wanted,
  nodes: readonly string[],
  log: ProgressLog & { readonly debug: (message: string) => void },
): Promise<readonly Loaded[]> {
  const loaded = await streamImages(docker, wanted, nodes, {
    debug: log.debug,
    onProgress: createProgress(log),
    beside: besideOf(plan),
  })
  for (const image of loaded) log.info(loadedLine(image))
  return loaded
}
