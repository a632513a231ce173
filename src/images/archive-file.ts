/** An archive's bytes, unpacked. */
import { closeSync, createReadStream, openSync, readSync } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { Readable, type Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { Problem } from '../lib/problem.ts'
import type { TarSource } from './tar.ts'

/** Whether a file's first bytes are those of a tar archive, packed or not. */
export function looksLikeArchive(path: string): boolean {
  const start = Buffer.alloc(262)
  const file = openSync(path, 'r')
  try {
    readSync(file, start, 0, start.length, 0)
  } finally {
    closeSync(file)
  }
  return start.toString('latin1', 257) === 'ustar' || MAGIC.some(([, magic]) => start.toString('hex').startsWith(magic))
}

/** Since Node 22.15; the types are of the oldest Node that we run on. */
const zstd = (zlib as { createZstdDecompress?: () => Transform & { readonly bytesWritten: number } })
  .createZstdDecompress

export type Compression = 'none' | 'gzip' | 'zstd'

/** The first bytes of what an archive may be packed with; of the last ones we read none. */
const MAGIC: readonly (readonly [packed: Compression | 'bzip2' | 'xz', hex: string])[] = [
  ['gzip', '1f8b'],
  ['zstd', '28b52ffd'],
  // pzstd begins with a frame that is to be skipped.
  ['zstd', '502a4d18'],
  ['bzip2', '425a68'],
  ['xz', 'fd377a585a00'],
]

/**
 * How an archive is packed, from its content: names are chosen freely.
 *
 * @param option as errors name it
 * @param knowsZstd whether this Node does
 * @throws Problem where we cannot unpack it
 */
export async function compressionOf(
  path: string,
  option: string,
  knowsZstd: boolean = zstd !== undefined,
): Promise<Compression> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, 0)
    const start = buffer.toString('hex', 0, bytesRead)
    const packed = MAGIC.find(([, magic]) => start.startsWith(magic))?.[0] ?? 'none'
    if (packed === 'bzip2' || packed === 'xz') {
      throw new Problem(`${option}: ${path} is packed with ${packed}; pack it with gzip or zstd, or not at all`)
    }
    if (packed === 'zstd' && !knowsZstd) {
      throw new Problem(
        `${option}: ${path} is packed with zstd, which Node ${process.versions.node} cannot unpack; use Node 22.15 or newer, or pack it with gzip`,
      )
    }
    return packed
  } finally {
    await file.close()
  }
}

/** Larger pieces than Node's own: unpacking is most of what there is to do. */
const PIECE = 256 * 1024

/** The unpacked bytes from the beginning. Fails in the middle where they are broken. */
export function unpacked(path: string, compression: Compression): { bytes: AsyncIterable<Buffer>; stop: () => void } {
  if (compression === 'zstd') {
    const bytes = Readable.from(zstdFrames(path), { objectMode: false, highWaterMark: PIECE })
    return { bytes, stop: () => void bytes.destroy() }
  }
  const file = createReadStream(path, { highWaterMark: PIECE })
  if (compression === 'none') return { bytes: file, stop: () => void file.destroy() }
  const unpacking = zlib.createGunzip({ chunkSize: PIECE })
  file.on('error', error => unpacking.destroy(error))
  file.pipe(unpacking)
  return {
    bytes: unpacking,
    stop: () => {
      file.destroy()
      unpacking.destroy()
    },
  }
}

/** The content of all frames of a zstd file (RFC 8878): Node's decoder ends with the first, and several programs write many. */
async function* zstdFrames(path: string): AsyncGenerator<Buffer> {
  if (zstd === undefined) throw new Error('this Node has no zstd')
  const { size } = await stat(path)
  for (let at = 0; at < size; ) {
    const skippable = await skippableFrame(path, at)
    if (skippable !== undefined) {
      at += skippable
      continue
    }
    const file = createReadStream(path, { start: at, highWaterMark: PIECE })
    const unpacking = zstd()
    try {
      file.on('error', error => unpacking.destroy(error))
      file.pipe(unpacking)
      yield* unpacking
    } finally {
      file.destroy()
    }
    if (unpacking.bytesWritten === 0) throw new Error('a frame has no bytes')
    at += unpacking.bytesWritten
  }
}

/** The length of a frame that decoders skip, which begins at a place of a file; undefined where none does. */
async function skippableFrame(path: string, at: number): Promise<number | undefined> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(8), 0, 8, at)
    const isSkippable = bytesRead === 8 && (buffer.readUInt32LE(0) & 0xfffffff0) >>> 0 === 0x184d2a50
    return isSkippable ? 8 + buffer.readUInt32LE(4) : undefined
  } finally {
    await file.close()
  }
}

/** A file of which only what is asked for is read: a large archive is looked through in no time. */
export async function* withFile<T>(path: string, use: (source: TarSource) => AsyncGenerator<T>): AsyncGenerator<T> {
  const file = await open(path)
  try {
    yield* use(fileSource(file, (await file.stat()).size))
  } finally {
    await file.close()
  }
}

function fileSource(file: FileHandle, size: number): TarSource {
  let position = 0
  return {
    skip: bytes => {
      position += bytes
      return position <= size
    },
    [Symbol.asyncIterator]: () => ({
      next: async () => {
        // Headers and what is small beside them; layers are passed over.
        const { buffer, bytesRead } = await file.read(Buffer.alloc(16 * 1024), 0, 16 * 1024, position)
        position += bytesRead
        return bytesRead === 0
          ? { done: true, value: undefined }
          : { done: false, value: buffer.subarray(0, bytesRead) }
      },
    }),
  }
}
