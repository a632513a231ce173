/** What is in an archive of images: `docker save` of any age, OCI layouts, plain or packed. */
import { existsSync, statSync } from 'node:fs'
import { messageOf, Problem } from '../lib/problem.ts'
import { isArchiveName } from '../options.ts'
import { type Compression, compressionOf, looksLikeArchive, unpacked, withFile } from './archive-file.ts'
import {
  blobName,
  type Descriptor,
  type DockerImage,
  IMAGE_NAME,
  looksLikeJson,
  type Platform,
  REF_NAME,
  readConfig,
  readDockerManifest,
  readIndex,
  readManifest,
} from './oci.ts'
import { parseReference } from './reference.ts'
import { BadTar, type Entry, readTar } from './tar.ts'

export interface Archive {
  readonly path: string
  readonly compression: Compression
  /** Whether it is an OCI layout, of which a part can be sent. */
  readonly isLayout: boolean
  readonly images: readonly ArchivedImage[]
}

export interface ArchivedImage {
  /** As the archive names it. */
  readonly reference: string
  /** In full, as containerd names it. */
  readonly name: string
  /** The digests that tell its content: of its config, its manifest and what stands above that. */
  readonly ids: readonly string[]
  /** Digests of its unpacked layers, from the lowest. */
  readonly diffIds: readonly string[]
  /** The digest of each layer unpacked, by its digest as it is in the archive. */
  readonly layers: ReadonlyMap<string, string>
}

/** The images in archives, by the names that those give them. */
export function namesIn(archives: readonly Archive[]): string[] {
  return archives.flatMap(({ images }) => images.map(({ reference }) => reference))
}

/** What the option `images` was given, taken apart. A word that could be a reference is an archive where it is a file that is one. */
export function splitImages(
  words: readonly string[],
  isFile: (path: string) => boolean = isArchiveHere,
): { readonly references: readonly string[]; readonly archives: readonly string[] } {
  const isArchive = (word: string): boolean => isArchiveName(word) || isFile(word)
  return { references: words.filter(word => !isArchive(word)), archives: [...new Set(words.filter(isArchive))] }
}

/** Not any file: a program may lie there that has the name of its image. */
function isArchiveHere(path: string): boolean {
  return isFileHere(path) && looksLikeArchive(path)
}

function isFileHere(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

/** Small entries are kept while an archive is looked through: indexes, manifests and configs. Bytes, each and all. */
const KEPT = { each: 4 * 1024 * 1024, all: 64 * 1024 * 1024 }

/**
 * Looks an archive through, to its end: what is broken is told now and not when a cluster stands.
 *
 * @param option as errors name it: `images` or `node-image`
 * @param architecture the nodes', as Go names it
 * @throws Problem that names the archive: not there, broken, no archive of images, of images without a name or for another platform
 */
export async function readArchive(path: string, option: string, architecture: string): Promise<Archive> {
  const fail = (found: string): Problem => new Problem(`${option}: ${path} ${found}`)
  if (!isFileHere(path)) throw fail('is no file here; name an archive that a step before this one wrote')
  const compression = await compressionOf(path, option).catch((error: unknown) => {
    throw error instanceof Problem ? error : fail(`cannot be read: ${messageOf(error)}`)
  })
  const { names, kept } = await list(path, compression).catch((error: unknown) => {
    throw fail(broken(error))
  })
  const index = readIndex(kept.get('index.json'))
  const docker = readDockerManifest(kept.get('manifest.json'))
  if (index === undefined && docker === undefined) {
    throw fail('is no archive of images: it has neither an index.json nor a manifest.json; write it with docker save')
  }
  const look = { fail, names, kept, platform: { os: 'linux', architecture } }
  const images =
    index === undefined ? (docker ?? []).flatMap(image => dockerImages(image, look)) : layoutImages(index, docker, look)
  if (images.length === 0) throw fail('holds no image')
  return { path, compression, isLayout: index !== undefined, images }
}

interface Look {
  readonly fail: (found: string) => Problem
  /** Of all entries. */
  readonly names: ReadonlySet<string>
  readonly kept: ReadonlyMap<string, Buffer>
  readonly platform: Platform
}

/** All names in an archive, and what is small. */
async function list(path: string, compression: Compression): Promise<Pick<Look, 'names' | 'kept'>> {
  const names = new Set<string>()
  const kept = new Map<string, Buffer>()
  let room = KEPT.all
  for await (const entry of entries(path, compression)) {
    names.add(entry.name)
    if (!entry.isFile || entry.size > KEPT.each || entry.size > room) continue
    const chunks: Buffer[] = []
    for await (const chunk of entry.body()) {
      if (chunks.length === 0 && !looksLikeJson(chunk)) break
      chunks.push(chunk)
    }
    if (chunks.length === 0) continue
    // A copy: the chunk may be a small part of what was read.
    kept.set(entry.name, Buffer.concat(chunks))
    room -= entry.size
  }
  return { names, kept }
}

async function* entries(path: string, compression: Compression): AsyncGenerator<Entry> {
  if (compression === 'none') {
    yield* withFile(path, readTar)
    return
  }
  const { bytes, stop } = unpacked(path, compression)
  try {
    yield* readTar(bytes)
  } finally {
    stop()
  }
}

/** What is wrong with a file, as words after its name. */
function broken(error: unknown): string {
  const truncated = 'breaks off before its end; write it again, and look whether the disk was full'
  if (error instanceof BadTar) return error.truncated ? truncated : `${error.message}; write it with docker save`
  const { code = '' } = error as NodeJS.ErrnoException
  if (code === 'Z_BUF_ERROR') return truncated
  return `cannot be read: ${messageOf(error)}`
}

function layoutImages(
  index: readonly Descriptor[],
  docker: readonly DockerImage[] | undefined,
  look: Look,
): readonly ArchivedImage[] {
  return index.flatMap(top => {
    const of = (descriptor: Descriptor): Buffer | undefined => look.kept.get(blobName(descriptor.digest))
    const found = manifests(top, of)
    const own = found.find(({ platform }) => isSame(platform, look.platform))
    const tags = docker?.find(({ config }) => config === blobName(own?.config ?? ''))?.tags ?? []
    const references = namesOf(top, tags)
    const label = references[0] ?? top.digest
    if (own === undefined) {
      if (found.length === 0) throw look.fail(`lacks what its index names for ${label}: write it again`)
      throw look.fail(
        otherPlatform(
          label,
          found.map(({ platform }) => platform),
          look.platform,
        ),
      )
    }
    if (references.length === 0) {
      throw look.fail(
        `holds an image without a name (${top.digest}), by which no pod could ask for it; save it by its name (docker save NAME)`,
      )
    }
    const lacking = own.layers.find(({ digest }) => !look.names.has(blobName(digest)))
    if (lacking !== undefined) throw look.fail(`lacks the layer ${lacking.digest} of ${label}; write it again`)
    const layers = new Map(own.layers.map(({ digest }, place) => [digest, own.diffIds[place] ?? digest]))
    const ids = [...new Set([own.config, own.digest, top.digest])]
    return references.map(reference => ({
      reference,
      name: parseReference(reference).name,
      ids,
      diffIds: own.diffIds,
      layers,
    }))
  })
}

interface Found {
  readonly digest: string
  readonly config: string
  readonly layers: readonly Descriptor[]
  readonly platform: Platform
  readonly diffIds: readonly string[]
}

/** The manifests under a descriptor that are there with their configs, through indexes of platforms. */
function manifests(descriptor: Descriptor, of: (descriptor: Descriptor) => Buffer | undefined, depth = 0): Found[] {
  const content = of(descriptor)
  const children = readIndex(content)
  // An index in an index in an index is nobody's.
  if (children !== undefined) return depth > 2 ? [] : children.flatMap(child => manifests(child, of, depth + 1))
  const manifest = readManifest(content)
  const config = manifest === undefined ? undefined : readConfig(of(manifest.config))
  // BuildKit's attestations are images of no platform.
  if (manifest === undefined || config === undefined || config.os === 'unknown') return []
  const { diffIds, ...platform } = config
  return [{ digest: descriptor.digest, config: manifest.config.digest, layers: manifest.layers, platform, diffIds }]
}

/** By which names an image of a layout goes: containerd's annotation, the tags of docker, a whole reference in OCI's. */
function namesOf({ annotations = {} }: Descriptor, tags: readonly string[]): readonly string[] {
  const full = annotations[IMAGE_NAME]
  if (full !== undefined && full !== '') return [short(full)]
  if (tags.length > 0) return tags
  const ref = annotations[REF_NAME] ?? ''
  return /[/:@]/.test(ref) ? [ref] : []
}

/** A full name as people write it, where that is the same image. */
function short(name: string): string {
  const written = name.replace(/^docker\.io\/(library\/)?/, '')
  return parseReference(written).name === name ? written : name
}

/** The images of an archive as docker wrote it before it knew OCI layouts, and as many build tools do. */
function dockerImages({ config, tags, layers }: DockerImage, look: Look): readonly ArchivedImage[] {
  const told = readConfig(look.kept.get(config))
  const label = tags[0] ?? config
  const lacking = layers.find(name => !look.names.has(name))
  if (told === undefined || lacking !== undefined) {
    throw look.fail(
      `lacks ${told === undefined ? `the config ${config}` : `the layer ${lacking}`} of ${label}; write it again`,
    )
  }
  if (!isSame(told, look.platform)) throw look.fail(otherPlatform(label, [told], look.platform))
  if (tags.length === 0) {
    throw look.fail(
      `holds an image without a name (${config}), by which no pod could ask for it; save it by its name (docker save NAME)`,
    )
  }
  const id = /([0-9a-f]{64})(\.json)?$/.exec(config)?.[1]
  return tags.map(reference => ({
    reference,
    name: parseReference(reference).name,
    ids: id === undefined ? [] : [`sha256:${id}`],
    diffIds: told.diffIds,
    layers: new Map(),
  }))
}

function isSame(one: Platform, other: Platform): boolean {
  return one.os === other.os && one.architecture === other.architecture
}

function otherPlatform(label: string, has: readonly Platform[], wanted: Platform): string {
  return `holds ${label} for ${[...new Set(has.map(written))].join(', ')}, and the nodes on this engine are ${written(wanted)}; build it for ${written(wanted)} (--platform)`
}

function written({ os, architecture }: Platform): string {
  return `${os}/${architecture}`
}

/**
 * Looks all archives through, and sees what is wrong with any of them.
 *
 * @throws Problem with a line for each that is wrong
 */
export async function readArchives(
  paths: readonly string[],
  option: string,
  architecture: string,
): Promise<readonly Archive[]> {
  const read = await Promise.allSettled(paths.map(path => readArchive(path, option, architecture)))
  const problems = read.flatMap(result => (result.status === 'rejected' ? [messageOf(result.reason)] : []))
  if (problems.length > 0) throw new Problem(problems.join('\n'))
  return read.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []))
}
