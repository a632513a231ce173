/** OCI layouts as `docker save` writes them, small enough to look into. */
import { createHash } from 'node:crypto'
import { blobName, IMAGE_NAME } from '../../src/images/oci.ts'
import { TAR_END, tarFile } from '../../src/images/tar.ts'

export const sha256 = (content: Buffer | string): string =>
  `sha256:${createHash('sha256').update(content).digest('hex')}`

/** A layer of its own content, too large to be taken for a config. */
export function layer(of: string, size = 100_000): Buffer {
  return Buffer.alloc(size, `${of} `)
}

export interface FakeImage {
  /** In full; undefined for an image that was saved by its digest. */
  readonly name?: string
  readonly layers: readonly Buffer[]
  readonly architecture?: string
  /** Whether an index of platforms stands over its manifest, in which others are named that are not there. */
  readonly index?: boolean
  /** More annotations of its descriptor. */
  readonly annotations?: Readonly<Record<string, string>>
}

export interface FakeLayout {
  readonly tar: Buffer
  /** Of each image: what tells its content. */
  readonly images: readonly { readonly config: string; readonly top: string; readonly diffIds: readonly string[] }[]
}

/** Engines write blobs in the order of their digests, and what names them at the end. */
export function layoutOf(images: readonly FakeImage[]): FakeLayout {
  const blobs = new Map<string, Buffer>()
  const add = (content: Buffer): { digest: string; size: number } => {
    blobs.set(sha256(content), content)
    return { digest: sha256(content), size: content.length }
  }
  const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
  const made = images.map(({ name, layers, architecture = 'amd64', index = false, annotations: more }) => {
    const diffIds = layers.map(sha256)
    const config = add(json({ os: 'linux', architecture, rootfs: { type: 'layers', diff_ids: diffIds } }))
    let top = {
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      ...add(json({ schemaVersion: 2, config, layers: layers.map(add) })),
    }
    if (index) {
      const other = { ...top, digest: sha256('other'), platform: { os: 'linux', architecture: 's390x' } }
      const manifests = [other, { ...top, platform: { os: 'linux', architecture } }]
      top = { mediaType: 'application/vnd.oci.image.index.v1+json', ...add(json({ schemaVersion: 2, manifests })) }
    }
    const annotations = { ...(name === undefined ? {} : { [IMAGE_NAME]: name }), ...more }
    return { config: config.digest, diffIds, top: { ...top, annotations } }
  })
  return {
    images: made.map(image => ({ ...image, top: image.top.digest })),
    tar: Buffer.concat([
      ...[...blobs].sort(([a], [b]) => (a < b ? -1 : 1)).map(([digest, content]) => tarFile(blobName(digest), content)),
      tarFile('index.json', json({ schemaVersion: 2, manifests: made.map(({ top }) => top) })),
      tarFile('manifest.json', json([])),
      tarFile('oci-layout', json({ imageLayoutVersion: '1.0.0' })),
      TAR_END,
    ]),
  }
}
