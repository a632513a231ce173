/** A node image that comes as an archive. */
import { type Docker, EngineLate } from '../engine/docker.ts'
import { imageId, loadArchive } from '../engine/images.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { whatItSaid } from '../lib/run.ts'
import { type Archive, type ArchivedImage, readArchive } from './archive.ts'

export interface NodeArchive {
  readonly archive: Archive
  readonly image: ArchivedImage
}

/** How long the engine may take to load it, in milliseconds: a node image has 1 GB. */
const LOAD_LIMIT = 20 * 60_000

/** @throws Problem as `readArchive` does, and where it is not one image */
export async function readNodeArchive(path: string, architecture: string): Promise<NodeArchive> {
  const archive = await readArchive(path, 'node-image', architecture)
  const [image, ...others] = archive.images
  if (image === undefined || others.some(({ ids }) => ids[0] !== image.ids[0])) {
    const names = archive.images.map(({ reference }) => reference).join(', ')
    throw new Problem(`node-image: ${path} holds several images (${names}); write one with the node image alone`)
  }
  return { archive, image }
}

/** Sees that the engine has the node image. What it has under that name and is another image gives its name up. */
export async function loadNodeImage(
  docker: Docker,
  { archive, image }: NodeArchive,
  info: (message: string) => void,
): Promise<void> {
  const has = await docker.try(imageId(image.reference))
  if (has.code === 0 && image.ids.includes(has.stdout.trim())) return
  info(`Loading the node image ${image.reference} from ${archive.path}`)
  const started = performance.now()
  const loaded = await docker.try(loadArchive(archive.path), { timeout: LOAD_LIMIT }).catch((error: unknown) => {
    if (!(error instanceof EngineLate)) throw error
    throw new Problem(
      `node-image: the engine did not load ${archive.path} within ${formatDuration(LOAD_LIMIT)}; look at its log and its load`,
    )
  })
  if (loaded.code !== 0) {
    throw new Problem(
      `node-image: the engine does not load ${archive.path}: ${whatItSaid(loaded, 1)}; look whether it has room, and whether docker load takes the archive`,
    )
  }
  info(`Loaded it in ${formatDuration(performance.now() - started)}`)
}
