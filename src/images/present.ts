import { type Docker, imageArchitecture, inspectImages, pullImage } from '../engine/docker.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { lastLines, type Result } from '../lib/run.ts'

/** How long a pull may take, in milliseconds: a node image has 1 GB. */
const PULL_LIMIT = 20 * 60_000

/**
 * Sees that the engine has every image that is to be loaded.
 *
 * @throws Problem that names those it lacks, and those that are named by an id
 */
export async function checkImages(docker: Docker, references: readonly string[]): Promise<void> {
  if (references.length === 0) return
  const result = await docker.try(inspectImages(references))
  if (result.code === 0) {
    const names = result.stdout.trim().split('\n')
    const nameless = references.filter(
      (reference, index) => isId(reference) && !names[index]?.includes(`"${reference}:`),
    )
    if (nameless.length === 0) return
    throw new Problem(
      `images: ${nameless.join(', ')} is an id, by which no pod can name an image; tag it (docker tag) and name the tag`,
    )
  }
  // The CLI says "No such image: name" for each; the API's own words differ between releases, the name stands last.
  const lacking = references.filter(reference => result.stderr.includes(reference))
  throw new Problem(
    `images: the engine has no ${lacking.join(', ') || references.join(', ')}; build or pull it in a step before this one, on this engine`,
  )
}

/** Whether a reference may be an id, or the start of one. */
function isId(reference: string): boolean {
  return /^[0-9a-f]{6,64}$/.test(reference)
}

/** Sees that the engine has every node image: see `ensureNodeImage`. */
export async function ensureNodeImages(
  docker: Docker,
  references: readonly string[],
  architecture: string,
  info: (message: string) => void,
): Promise<void> {
  await Promise.all(references.map(reference => ensureNodeImage(docker, reference, architecture, info)))
}

/**
 * Sees that the engine has the node image, for its own architecture. It is pulled here and not by kind, so that its time
 * is seen and other work goes on beside it.
 *
 * @param architecture the engine's, as Go names it
 */
async function ensureNodeImage(
  docker: Docker,
  reference: string,
  architecture: string,
  info: (message: string) => void,
): Promise<void> {
  const look = (): Promise<Result> => docker.try(imageArchitecture(reference))
  let found = await look()
  if (found.code !== 0) {
    info(`Pulling the node image ${reference}`)
    const started = performance.now()
    const pulled = await docker.try(pullImage(reference), { timeout: PULL_LIMIT })
    if (pulled.code !== 0) {
      throw new Problem(
        `node-image: the engine cannot pull ${reference}: ${lastLines(pulled.stderr.trim(), 1)}; it is the engine, not this step, that must reach the registry: name an image that it reaches, or load one into it before (docker load)`,
      )
    }
    info(`Pulled it in ${formatDuration(performance.now() - started)}`)
    found = await look()
  }
  const own = found.stdout.trim()
  if (own !== architecture) {
    throw new Problem(
      `node-image: ${reference} is for ${own}, and the engine runs ${architecture}; name one for ${architecture}`,
    )
  }
}
