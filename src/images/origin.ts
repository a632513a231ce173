/** Where images on their way into the nodes come from: the engine, and archives. */
import type { Docker } from '../engine/docker.ts'
import { describeImages, saveImages } from '../engine/images.ts'
import type { Archive } from './archive.ts'
import { unpacked } from './archive-file.ts'
import { parseReference, withTag } from './reference.ts'

/** How long an import may take, and with it the read that feeds it, in seconds. */
export const IMPORT_LIMIT = 1800

/** An image as a source has it. */
export interface Image {
  readonly given: string
  /** By what the engine gives out this one alone: see `withTag`. */
  readonly asked?: string
  /** As containerd names it. */
  readonly name: string
  /** The digests that tell its content: of its config, manifest or index. */
  readonly ids: readonly string[]
  readonly diffIds: readonly string[]
  /** Bytes as the engine tells them; undefined for those of an archive. */
  readonly size?: number | undefined
  /** Whether the engine writes its layers unpacked, so that each has the digest of its content. */
  readonly isClassic?: boolean
  /** The digest of each layer unpacked, by its digest as it comes; undefined where the layers come as the engine has them. */
  readonly layers?: ReadonlyMap<string, string>
}

/** Where images come from. */
export interface Origin {
  /** Begins a read of these images; of an archive, always of all. */
  readonly open: (images: readonly Image[]) => Source
  /** Whether it is an OCI layout; undefined where only the stream tells. */
  readonly isLayout?: boolean
  /** What to say where it cannot be read. */
  readonly blame: string
}

export interface Source {
  readonly bytes: AsyncIterable<Buffer>
  /** Rejects with why it could not be read to its end. */
  readonly ended: Promise<unknown>
  readonly stop: () => void
}

/** The engine's own images, as `describe` tells of them. */
export function engineOrigin(docker: Docker): Origin {
  return {
    open: images => {
      const running = docker.start(saveImages(images.map(({ given, asked = given }) => asked)), {
        timeout: IMPORT_LIMIT * 1000,
      })
      return { bytes: running.stdout as AsyncIterable<Buffer>, ended: running.ended, stop: running.end }
    },
    blame: 'the engine does not give them out',
  }
}

/** An archive that was read before. */
export function archiveOrigin({ path, compression, isLayout }: Archive): Origin {
  return {
    open: () => ({ ...unpacked(path, compression), ended: Promise.resolve() }),
    isLayout,
    blame: `${path} cannot be read to its end`,
  }
}

/** What the engine tells of images that it has, each reference with the name by which it has it, in their order. */
export async function describe(docker: Docker, references: ReadonlyMap<string, string>): Promise<readonly Image[]> {
  const { stdout } = await docker.run(describeImages([...references.values()]))
  const told = stdout
    .trim()
    .split('\n')
    .map(
      line => JSON.parse(line) as { id: string; size?: number; layers: readonly string[] | null; unpacked?: unknown },
    )
  return [...references].map(([given, had], index) => ({
    ...{ given, name: parseReference(given).name, asked: withTag(parseReference(had)) },
    ids: [told[index]?.id ?? ''],
    diffIds: told[index]?.layers ?? [],
    size: told[index]?.size,
    isClassic: (told[index]?.unpacked ?? null) !== null,
  }))
}
