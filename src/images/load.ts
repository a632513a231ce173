import type { Docker } from '../engine/docker.ts'
import { type Loaded, loadedLine } from './loaded.ts'
import { streamImages, type Wanted } from './stream.ts'

/** Brings images into every node, and tells of each how it came. See `streamImages`. */
export async function loadImages(
  docker: Docker,
  wanted: Wanted,
  nodes: readonly string[],
  log: { readonly info: (message: string) => void; readonly debug: (message: string) => void },
): Promise<readonly Loaded[]> {
  const loaded = await streamImages(docker, wanted, nodes, { debug: log.debug })
  for (const image of loaded) log.info(loadedLine(image))
  return loaded
}
