import { type Docker, inspectImages, pullImage } from '../engine/docker.ts'
import { Problem } from '../lib/problem.ts'

/**
 * Sees that the engine has every image that is to be loaded.
 *
 * @throws Problem that names those it lacks
 */
export async function checkImages(docker: Docker, references: readonly string[]): Promise<void> {
  if (references.length === 0) return
  const result = await docker.try(inspectImages(references))
  if (result.code === 0) return
  // The CLI says "No such image: name" for each; the API's own words differ between releases, the name stands last.
  const lacking = references.filter(reference => result.stderr.includes(reference))
  throw new Problem(
    `images: the engine has no ${lacking.join(', ') || references.join(', ')}; build or pull it in a step before this one, on this engine`,
  )
}

/** Pulls the node image where the engine lacks it, so that its time is seen and can run beside other work; kind's own choice is left to kind. */
export async function ensureNodeImage(
  docker: Docker,
  reference: string | undefined,
  info: (message: string) => void,
): Promise<void> {
  if (reference === undefined) return
  const present = await docker.try(inspectImages([reference]))
  if (present.code === 0) return
  info(`Pulling the node image ${reference}`)
  const pulled = await docker.try(pullImage(reference))
  if (pulled.code !== 0) {
    throw new Problem(`node-image: the engine cannot pull ${reference}: ${pulled.stderr.trim().split('\n').at(-1)}`)
  }
}
