import { type Docker, imageArchitecture, pullImage } from '../engine/docker.ts'
import { Problem } from '../lib/problem.ts'
import { lastLines } from '../lib/run.ts'

/** How long the pull may take, in milliseconds: the image has 100 MB. */
const PULL_LIMIT = 10 * 60_000

/** Sees that the engine has BuildKit's image, from which the nodes get it. @throws Problem where it cannot pull it */
export async function ensureBuildkitImage(
  docker: Docker,
  reference: string,
  info: (message: string) => void,
): Promise<void> {
  if ((await docker.try(imageArchitecture(reference))).code === 0) return
  info(`Pulling BuildKit's image ${reference}`)
  const pulled = await docker.try(pullImage(reference), { timeout: PULL_LIMIT })
  if (pulled.code === 0) return
  throw new Problem(
    `builder: the engine cannot pull ${reference}: ${lastLines(pulled.stderr.trim(), 1)}; name an image that it reaches (image=…), or load one into it before (docker load)`,
  )
}
