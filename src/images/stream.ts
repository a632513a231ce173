/** Images on their way into the nodes. */
import type { Docker } from '../engine/docker.ts'
import { importImages } from '../engine/images.ts'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { within } from '../lib/within.ts'
import type { Archive } from './archive.ts'
import { type Beside, feedBeside, WORTH_IT } from './beside.ts'
import { Feed, LIMITS, type Limits, type Outcome, waitForRoom } from './feed.ts'
import type { Loaded } from './loaded.ts'
import { askNode, EMPTY_NODE, lackingLayers, type NodeContent, parseNodeContent } from './node-content.ts'
import { blobDigest, type Descriptor, IMAGE_NAME, looksLikeJson, readConfig, readIndex, readManifest } from './oci.ts'
import { archiveOrigin, describe, engineOrigin, IMPORT_LIMIT, type Image, type Origin } from './origin.ts'
import { padding, readTar, TAR_END, tarFile, tarHeader } from './tar.ts'

export interface StreamOptions {
  readonly debug: (message: string) => void
  /** Sees how many bytes were read so far, often. */
  readonly onProgress?: (bytes: number) => void
  readonly limits?: Limits
  /** The way beside the engine, where there may be one. */
  readonly beside?: Beside
}

/**
 * Brings images into every node. One read of the engine feeds all nodes, and none gets what it has: neither an image whose
 * name and content are there, nor a layer that is unpacked there already.
 *
 * @throws Problem that names each node whose import failed; the others have all then
 */
export async function streamImages(
  docker: Docker,
  { references, archives }: Wanted,
  nodes: readonly string[],
  options: StreamOptions,
): Promise<readonly Loaded[]> {
  const loaded: Loaded[] = []
  const bringAll = async (images: Promise<readonly Image[]> | readonly Image[], origin: Origin): Promise<void> => {
    // What came before may have brought layers of what comes now.
    const looked = Promise.all(nodes.map(node => look(docker, node, options.debug)))
    loaded.push(...(await bring(docker, await images, origin, await looked, options)))
  }
  if (references.size > 0) await bringAll(describe(docker, references), engineOrigin(docker))
  for (const archive of archives) {
    const images = archive.images.map(image => ({ ...image, given: `${image.reference} (${archive.path})` }))
    await bringAll(images, archiveOrigin(archive))
  }
  return loaded
}

/** What is to be brought. */
export interface Wanted {
  /** References of what the engine has, each with the name by which it has it. */
  readonly references: ReadonlyMap<string, string>
  /** What the step has. */
  readonly archives: readonly Archive[]
}

/** A node and what it has. */
interface Looked {
  readonly node: string
  readonly content: NodeContent
}

/** What a node has; nothing where it does not tell: all is sent to it then, and its import says what is wrong with it. */
async function look(docker: Docker, node: string, debug: (message: string) => void): Promise<Looked> {
  try {
    return { node, content: parseNodeContent((await docker.run(askNode(node))).stdout) }
  } catch (error) {
    debug(`${node} does not tell what it has: ${messageOf(error)}`)
    return { node, content: EMPTY_NODE }
  }
}

/** What one node is to get. */
interface Target extends Looked {
  readonly images: readonly Image[]
  /** Whether it gets all, whatever it has. */
  readonly plain: boolean
  /** Bytes that were sent, by the digest of what they are. */
  readonly sent: Map<string, number>
  /** Digests of what was not sent, because the node has it. */
  readonly skipped: Set<string>
}

async function bring(
  docker: Docker,
  images: readonly Image[],
  origin: Origin,
  nodes: readonly Looked[],
  options: StreamOptions,
): Promise<readonly Loaded[]> {
  const started = performance.now()
  const targets = nodes
    .map(
      (looked): Target => ({
        ...looked,
        plain: false,
        sent: new Map(),
        skipped: new Set(),
        images: images.filter(lacks(looked)),
      }),
    )
    .filter(target => target.images.length > 0)
  const blobs: Blobs = new Map()
  const failures: string[] = []
  const outcomes =
    (await goBeside(docker, targets, options)) ?? (await feedNodes(docker, origin, targets, blobs, options))
  for (const [index, target] of targets.entries()) {
    let outcome = outcomes[index]
    if (outcome === 'behind') {
      options.debug(`${target.node} gets a read of its own`)
      target.sent.clear()
      ;[outcome] = await feedNodes(docker, origin, [target], blobs, options)
    }
    if (typeof outcome === 'object' && 'failed' in outcome && target.skipped.size > 0) {
      options.debug(
        `${target.node} did not take the images without the layers that it has, so it gets all: ${outcome.failed}`,
      )
      target.sent.clear()
      const again: Target = { ...target, plain: true }
      ;[outcome] = await feedNodes(docker, origin, [again], blobs, options)
    }
    if (typeof outcome === 'object')
      failures.push(`${target.node}: ${'late' in outcome ? outcome.late : outcome.failed}`)
  }
  if (failures.length > 0) throw new Problem(`images: the import failed in ${failures.join('; ')}`)
  const took = performance.now() - started
  return images.map(image => tell(image, images, targets, nodes.length, blobs, took))
}

/**
 * Takes the way beside the engine where that is faster: much goes, and each of the nodes lacks all of it. An image without a name cannot
 * go there, since there nobody names it.
 */
async function goBeside(
  docker: Docker,
  targets: readonly Target[],
  { beside, debug, onProgress, limits = LIMITS }: StreamOptions,
): Promise<readonly Outcome[] | undefined> {
  const images = imagesOf(targets)
  if (beside === undefined || sum(images.map(({ size = 0 }) => size)) < WORTH_IT) return undefined
  if (images.some(({ given }) => given.includes('@'))) return undefined
  if (targets.some(target => target.images.length < images.length)) return undefined
  const layers = [...new Set(images.flatMap(({ diffIds }) => diffIds))]
  const canLeaveOut = beside.writesLayouts && images.every(({ isClassic }) => isClassic)
  const takers = targets.map(target => {
    const skip = skips(target)
    const without = layers.filter(layer => skip(layer, Number.POSITIVE_INFINITY))
    return { node: target.node, snapshotter: target.content.snapshotter, without }
  })
  if (!canLeaveOut && takers.some(({ without }) => without.length > 0)) return undefined
  const asked = images.map(image => image.asked ?? image.given)
  return feedBeside(docker, beside, asked, takers, { debug, onProgress }, limits)
}

const lacks =
  ({ content }: Looked) =>
  ({ name, ids }: Image): boolean =>
    !ids.some(id => content.images.get(name)?.has(id))

/** What a target need not be sent, by digest. */
function skips({ content, images, plain }: Target): (digest: string, size: number) => boolean {
  if (plain) return () => false
  const known = new Map(images.flatMap(({ diffIds, layers }) => [...(layers ?? diffIds.map(id => [id, id] as const))]))
  const needed = new Set(images.flatMap(({ diffIds }) => [...lackingLayers(diffIds, content)]))
  return (digest, size) => {
    const diffId = known.get(digest)
    return size > SMALL && (content.blobs.has(digest) || (diffId !== undefined && !needed.has(diffId)))
  }
}

/** Up to so many bytes a blob is sent whatever the node has: it costs nothing, and may be a config that is about to go. */
const SMALL = 64 * 1024

/** Indexes, manifests and configs that were read, by digest. */
type Blobs = Map<string, Buffer>

/** Such blobs are at most this large, in bytes. */
const JSON_LIMIT = 4 * 1024 * 1024

/**
 * Feeds nodes from one read.
 *
 * @returns how each target's import ended
 * @throws Problem where the source cannot be read
 */
async function feedNodes(
  docker: Docker,
  origin: Origin,
  targets: readonly Target[],
  blobs: Blobs,
  { onProgress, limits = LIMITS }: StreamOptions,
): Promise<readonly Outcome[]> {
  if (targets.length === 0) return []
  const began = performance.now()
  const source = origin.open(imagesOf(targets))
  const sinks = targets.map(target => ({
    target,
    feed: new Feed(
      // The node ends it, which a killed docker CLI would not; this is for an engine that does not say so.
      docker.start(importImages(target.node, target.content.snapshotter, IMPORT_LIMIT), {
        timeout: IMPORT_LIMIT * 1000 + limits.finish,
      }),
      IMPORT_LIMIT,
    ),
    skips: skips(target),
  }))
  type Sink = (typeof sinks)[number]
  const feeds = sinks.map(({ feed }) => feed)
  const isWanted = (): boolean => feeds.some(feed => feed.isOpen)
  const send = async (to: readonly Sink[], chunk: Buffer): Promise<void> => {
    for (const { feed } of to) feed.write(chunk)
    await waitForRoom(feeds, limits, began)
  }

  let index: Buffer | undefined
  let { isLayout } = origin
  const read = async (): Promise<void> => {
    for await (const entry of readTar(counted(source.bytes, limits, onProgress))) {
      if (!isWanted()) return
      if (!entry.isFile && isLayout !== false) continue
      isLayout ??= isOfLayout(entry.name)
      const digest = blobDigest(entry.name)
      const to = isLayout ? sinks.filter(sink => digest !== undefined && !sink.skips(digest, entry.size)) : sinks
      if (isLayout && digest === undefined && entry.name !== 'index.json') continue
      const kept: Buffer[] = []
      await send(to, isLayout ? tarHeader(entry.name, entry.size) : entry.raw)
      for await (const chunk of entry.body()) {
        if (entry.size <= JSON_LIMIT) kept.push(chunk)
        await send(to, chunk)
      }
      await send(to, Buffer.alloc(padding(entry.size)))
      const content = Buffer.concat(kept)
      if (isLayout && digest === undefined) index = content
      else if (digest !== undefined && looksLikeJson(content)) blobs.set(digest, content)
      if (digest === undefined) continue
      for (const sink of sinks) {
        if (to.includes(sink)) sink.target.sent.set(digest, entry.size)
        else sink.target.skipped.add(digest)
      }
    }
  }
  const unreadable = await read()
    .then(() => (isWanted() ? within(limits.silence, source.ended, () => new Silent(limits.silence)) : source.stop()))
    .then(
      () => undefined,
      async (error: unknown) => {
        source.stop()
        if (error instanceof Silent) return error.message
        // Why a stream broke off is known to the one who made it.
        return source.ended.then(
          () => messageOf(error),
          (reason: unknown) => messageOf(reason),
        )
      },
    )
  for (const { feed, target } of sinks) {
    if (unreadable !== undefined) feed.end({ failed: unreadable })
    else {
      if (isLayout) {
        feed.write(tarFile('oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}')))
        feed.write(tarFile('index.json', indexFor(target, index, blobs)))
      }
      feed.write(TAR_END)
      feed.finish(limits)
    }
  }
  const outcomes = await Promise.all(feeds.map(({ outcome }) => outcome))
  if (unreadable !== undefined) throw new Problem(`images: ${origin.blame}: ${unreadable}`)
  return outcomes
}

function isOfLayout(name: string): boolean {
  return name === 'oci-layout' || name === 'index.json' || name.startsWith('blobs/')
}

/** The images that any of the targets lacks, each once. */
function imagesOf(targets: readonly Target[]): readonly Image[] {
  return [...new Set(targets.flatMap(({ images }) => images))]
}

/** A source sends nothing any more. */
class Silent extends Error {
  constructor(limit: number) {
    super(`nothing came for ${formatDuration(limit)}`)
  }
}

async function* counted(
  bytes: AsyncIterable<Buffer>,
  limits: Limits,
  see?: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  let count = 0
  const source = bytes[Symbol.asyncIterator]()
  for (;;) {
    const limit = count === 0 ? limits.begin : limits.silence
    const { done, value } = await within(limit, source.next(), () => new Silent(limit))
    if (done) return
    count += value.length
    see?.(count)
    yield value
  }
}

/**
 * The index for one node: of what was read, the images that it lacks, under the names by which pods ask for them. An engine
 * gives an image that is named by a digest no name at all.
 */
function indexFor(target: Target, index: Buffer | undefined, blobs: Blobs): Buffer {
  const told = readIndex(index) ?? []
  const manifests = target.images.flatMap(image => {
    const found = told.find(descriptor => isOf(descriptor, image, blobs)) ?? told.find(isNamed(image))
    if (found === undefined) return []
    const { mediaType, digest, size, platform } = found
    return [{ mediaType, digest, size, platform, annotations: { [IMAGE_NAME]: image.name } }]
  })
  if (manifests.length < target.images.length && index !== undefined) return index
  return Buffer.from(JSON.stringify({ schemaVersion: 2, manifests }))
}

const isNamed =
  ({ name }: Image) =>
  ({ annotations }: Descriptor): boolean =>
    annotations?.[IMAGE_NAME] === name

/** Whether a descriptor's content is that of an image, whichever of its digests tells it. */
function isOf({ digest }: Descriptor, image: Image, blobs: Blobs): boolean {
  const content = blobs.get(digest)
  return (
    image.ids.includes(digest) ||
    image.ids.includes(readManifest(content)?.config.digest ?? '') ||
    (readIndex(content) ?? []).some(child => isOf(child, image, blobs))
  )
}

/** The layers of an image's manifest, of the platform that the engine has. */
function layersOf(image: Image, blobs: Blobs): readonly Descriptor[] | undefined {
  for (const content of blobs.values()) {
    const manifest = readManifest(content)
    const diffIds = readConfig(blobs.get(manifest?.config.digest ?? ''))?.diffIds
    if (manifest !== undefined && diffIds?.join() === image.diffIds.join()) return manifest.layers
  }
  return undefined
}

function tell(
  image: Image,
  images: readonly Image[],
  targets: readonly Target[],
  nodes: number,
  blobs: Blobs,
  took: number,
): Loaded {
  const layers = layersOf(image, blobs)
  const to = targets.filter(target => target.images.includes(image))
  const before = images.slice(0, images.indexOf(image))
  const distinct = [...new Map((layers ?? []).map(({ digest, size }) => [digest, size]))]
  const sent = to.map(target => {
    const counted = before.filter(other => target.images.includes(other)).flatMap(other => layersOf(other, blobs) ?? [])
    const own = distinct.filter(([digest]) => !counted.some(layer => layer.digest === digest))
    return sum(own.map(([digest]) => target.sent.get(digest) ?? 0))
  })
  return {
    image: image.given,
    had: nodes - to.length,
    brought: to.length,
    size: layers === undefined ? image.size : sum(distinct.map(([, size]) => size)),
    sent: layers === undefined ? undefined : sum(sent),
    took: to.length === 0 ? 0 : took,
  }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
