/**
 * What is in an OCI layout (https://github.com/opencontainers/image-spec): an index names manifests, a manifest names a
 * config and layers, each by the digest of its content.
 */
import { createHash } from 'node:crypto'

export interface Descriptor {
  readonly mediaType?: string
  readonly digest: string
  readonly size: number
  readonly platform?: Platform
  readonly annotations?: Readonly<Record<string, string>>
}

export interface Platform {
  readonly os?: string
  readonly architecture?: string
  readonly variant?: string
}

export interface Manifest {
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}

/** The annotation by which containerd names an image that it imports, in full. */
export const IMAGE_NAME = 'io.containerd.image.name'

/** The annotation of the specification: a tag, or a whole reference; each program writes what it likes. */
export const REF_NAME = 'org.opencontainers.image.ref.name'

/** The digest that an entry's name tells: `blobs/sha256/…`; undefined for others. */
export function blobDigest(name: string): string | undefined {
  const hex = /^blobs\/sha256\/([0-9a-f]{64})$/.exec(name)?.[1]
  return hex === undefined ? undefined : `sha256:${hex}`
}

export function blobName(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`
}

/** The descriptors of an index; undefined where the text is none. */
export function readIndex(content: Buffer | undefined): readonly Descriptor[] | undefined {
  const manifests = readJson(content)?.['manifests']
  return Array.isArray(manifests) && manifests.every(isDescriptor) ? manifests : undefined
}

/** A manifest; undefined where the text is none. */
export function readManifest(content: Buffer | undefined): Manifest | undefined {
  const { config, layers } = readJson(content) ?? {}
  return isDescriptor(config) && Array.isArray(layers) && layers.every(isDescriptor) ? { config, layers } : undefined
}

/** A config; undefined where the text is none. */
export function readConfig(
  content: Buffer | undefined,
): (Platform & { readonly diffIds: readonly string[] }) | undefined {
  const { os, architecture, variant, rootfs } = readJson(content) ?? {}
  const diffIds: unknown = typeof rootfs === 'object' && rootfs !== null ? (rootfs as Json)['diff_ids'] : undefined
  if (typeof os !== 'string' || typeof architecture !== 'string') return undefined
  return {
    os,
    architecture,
    ...(typeof variant === 'string' ? { variant } : {}),
    diffIds: texts(diffIds),
  }
}

/** The names by which snapshots are kept: each layer by what is under it, and itself. */
export function chainIds(diffIds: readonly string[]): readonly string[] {
  const chain: string[] = []
  for (const diffId of diffIds) {
    const under = chain.at(-1)
    chain.push(
      under === undefined ? diffId : `sha256:${createHash('sha256').update(`${under} ${diffId}`).digest('hex')}`,
    )
  }
  return chain
}

/** The manifest that an archive of `docker save` has beside, or instead of, an index; undefined where the text is none. */
export function readDockerManifest(content: Buffer | undefined): readonly DockerImage[] | undefined {
  const images = readJson(content)
  if (!Array.isArray(images)) return undefined
  return (images as readonly Json[]).map(({ Config, RepoTags, Layers }) => ({
    config: typeof Config === 'string' ? Config : '',
    tags: texts(RepoTags),
    layers: texts(Layers),
  }))
}

/** An image of such a manifest; config and layers are names of entries. */
export interface DockerImage {
  readonly config: string
  readonly tags: readonly string[]
  readonly layers: readonly string[]
}

function texts(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter(text => typeof text === 'string') : []
}

type Json = Readonly<Record<string, unknown>>

function readJson(content: Buffer | undefined): Json | undefined {
  try {
    if (content === undefined || !looksLikeJson(content)) return undefined
    return JSON.parse(content.toString('utf8')) as Json
  } catch {
    return undefined
  }
}

/** Whether a content may be an object or an array: most contents are layers. */
export function looksLikeJson(content: Buffer): boolean {
  return content[0] === 0x7b || content[0] === 0x5b
}

function isDescriptor(value: unknown): value is Descriptor {
  const { digest, size } = (value ?? {}) as Json
  return typeof digest === 'string' && typeof size === 'number'
}
