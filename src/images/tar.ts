/**
 * Tar as images come in it, as a stream: an image may be larger than memory and disk. Formats: ustar, pax and GNU, of
 * which https://www.gnu.org/software/tar/manual/html_node/Standard.html and pax(1) tell.
 *
 * A reader of our own and not a package: it hands the source's buffers on without a copy, keeps the raw headers for those
 * who pass an entry on as it came, and says whether a stream was cut off. That is most of what there is to it.
 */

const BLOCK = 512

/** A header's own records (long names, sizes over 8 GiB) are small; more is an attack on memory. */
const RECORD_LIMIT = 1024 * 1024

/** Not a tar stream, or one that breaks off. */
export class BadTar extends Error {
  override readonly name = 'BadTar'
  readonly truncated: boolean
  constructor(message: string, truncated: boolean) {
    super(message)
    this.truncated = truncated
  }
}

export interface Entry {
  /** As it was written, but for a leading `./`. It is never a path here. */
  readonly name: string
  /** Bytes. */
  readonly size: number
  readonly isFile: boolean
  /** Where the body begins in the stream, in bytes. */
  readonly offset: number
  /** The header's blocks as they came. */
  readonly raw: Buffer
  /** The content, once. What is not read is passed over. */
  body(): AsyncGenerator<Buffer>
}

/** What is read: a stream, or a file, in which bytes are passed over without reading them. */
export interface TarSource extends AsyncIterable<Buffer> {
  /** Passes over so many bytes of what comes next; false where there are not that many. */
  skip?(bytes: number): boolean
}

/**
 * Reads a tar stream to its end.
 *
 * @throws BadTar at the first header that is none, and where the stream ends before the mark at its end
 */
export async function* readTar(source: TarSource): AsyncGenerator<Entry> {
  const bytes = new Bytes(source)
  let extra: Extra = {}
  let raw: Buffer[] = []
  for (;;) {
    const block = await bytes.exactly(BLOCK)
    if (block === undefined) {
      throw bytes.offset === 0 ? new BadTar('is empty', true) : new BadTar('breaks off', true)
    }
    if (isZero(block)) break
    const header = readHeader(block)
    raw.push(block)
    const size = extra.size ?? header.size
    if (/[xgLK]/.test(header.type)) {
      if (header.size > RECORD_LIMIT) throw new BadTar(`has a header of ${header.size} bytes`, false)
      const record = await bytes.exactly(padded(header.size))
      if (record === undefined) throw new BadTar('breaks off', true)
      raw.push(record)
      extra = { ...extra, ...readRecord(header.type, record.subarray(0, header.size)) }
      continue
    }
    const end = bytes.offset + size
    yield {
      name: (extra.name ?? header.name).replace(/^(\.\/)+/, ''),
      size,
      isFile: header.type === '0' || header.type === '\0',
      offset: bytes.offset,
      raw: raw.length === 1 ? block : Buffer.concat(raw),
      body: () => bytes.upTo(end),
    }
    await bytes.skipTo(end + padding(size))
    extra = {}
    raw = []
  }
  // A program that writes into a pipe must not find it closed.
  await bytes.drain()
}

/** What follows an entry's content, in bytes: entries begin at whole blocks. */
export function padding(size: number): number {
  return padded(size) - size
}

function padded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK
}

/** The end of a tar stream. */
export const TAR_END = Buffer.alloc(2 * BLOCK)

/** The header of a file. @param name at most 100 bytes of ASCII */
export function tarHeader(name: string, size: number): Buffer {
  const header = Buffer.alloc(BLOCK)
  header.write(name, 0, 100, 'ascii')
  header.write('0000644\0', 100, 'ascii')
  header.write('0000000\0', 108, 'ascii')
  header.write('0000000\0', 116, 'ascii')
  if (size < 8 ** 11) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'ascii')
  else {
    // As GNU and Go write what octal has no room for.
    header[124] = 0x80
    header.writeBigUInt64BE(BigInt(size), 128)
  }
  header.write('00000000000\0', 136, 'ascii')
  header.write('0', 156, 'ascii')
  header.write('ustar\x0000', 257, 'ascii')
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148, 'ascii')
  return header
}

/** A whole file as an entry. */
export function tarFile(name: string, content: Buffer): Buffer {
  return Buffer.concat([tarHeader(name, content.length), content, Buffer.alloc(padding(content.length))])
}

interface Extra {
  readonly name?: string
  readonly size?: number
}

function readHeader(block: Buffer): { name: string; size: number; type: string } {
  const told = Number.parseInt(text(block, 148, 8).trim(), 8)
  if (told !== checksum(block)) throw new BadTar('is no tar archive', false)
  // GNU's own magic has something else where POSIX has the prefix.
  const prefix = block.toString('latin1', 257, 263) === 'ustar\0' ? text(block, 345, 155) : ''
  const name = text(block, 0, 100)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size: readNumber(block.subarray(124, 136)),
    type: String.fromCharCode(block[156] ?? 0),
  }
}

/** The sum of a header's bytes, in which its own field counts as spaces. */
function checksum(block: Buffer): number {
  let sum = 8 * 0x20
  for (let index = 0; index < BLOCK; index++) if (index < 148 || index >= 156) sum += block[index] ?? 0
  return sum
}

function readNumber(field: Buffer): number {
  const size =
    ((field[0] ?? 0) & 0x80) === 0
      ? Number.parseInt(
          field
            .toString('latin1')
            .replace(/[\0 ]+$/, '')
            .trim() || '0',
          8,
        )
      : Number(field.readBigUInt64BE(4))
  if (!Number.isSafeInteger(size) || size < 0) throw new BadTar('has an entry of no size', false)
  return size
}

function readRecord(type: string, record: Buffer): Extra {
  if (type === 'L') return { name: text(record, 0, record.length) }
  if (type !== 'x') return {}
  // `LENGTH KEY=VALUE\n`, again and again; the length is that of the whole record in bytes.
  const found: { name?: string; size?: number } = {}
  for (let at = 0; at < record.length; ) {
    const space = record.indexOf(0x20, at)
    const length = space < 0 ? Number.NaN : Number.parseInt(record.toString('latin1', at, space), 10)
    if (!(length > space - at && at + length <= record.length)) throw new BadTar('has a header that is none', false)
    const [key = '', ...value] = record.toString('utf8', space + 1, at + length - 1).split('=')
    if (key === 'path') found.name = value.join('=')
    if (key === 'size') {
      found.size = Number(value.join('='))
      if (!Number.isSafeInteger(found.size) || found.size < 0) throw new BadTar('has an entry of no size', false)
    }
    at += length
  }
  return found
}

/** A field's text, up to its first NUL. */
function text(block: Buffer, offset: number, length: number): string {
  const field = block.subarray(offset, offset + length)
  const end = field.indexOf(0)
  return field.toString('utf8', 0, end < 0 ? field.length : end)
}

function isZero(block: Buffer): boolean {
  return block.every(byte => byte === 0)
}

/** A stream of buffers, taken by numbers of bytes. */
class Bytes {
  /** How many were taken. */
  offset = 0
  private rest: Buffer = Buffer.alloc(0)
  private readonly source: AsyncIterator<Buffer>
  private readonly skip: TarSource['skip']

  constructor(source: TarSource) {
    this.source = source[Symbol.asyncIterator]()
    this.skip = source.skip?.bind(source)
  }

  /** So many bytes; undefined where the stream ends before. */
  async exactly(count: number): Promise<Buffer | undefined> {
    const parts: Buffer[] = []
    let missing = count
    while (missing > 0) {
      const part = await this.some(missing)
      if (part === undefined) return undefined
      parts.push(part)
      missing -= part.length
    }
    return parts.length === 1 ? parts[0] : Buffer.concat(parts)
  }

  /** All bytes up to an offset. @throws BadTar where the stream ends before */
  async *upTo(end: number): AsyncGenerator<Buffer> {
    while (this.offset < end) {
      const part = await this.some(end - this.offset)
      if (part === undefined) throw new BadTar('breaks off', true)
      yield part
    }
  }

  /** Passes over all bytes up to an offset. @throws BadTar where the stream ends before */
  async skipTo(end: number): Promise<void> {
    const far = end - this.offset - this.rest.length
    if (far > 0 && this.skip !== undefined) {
      if (!this.skip(far)) throw new BadTar('breaks off', true)
      this.rest = Buffer.alloc(0)
      this.offset = end
      return
    }
    for await (const _ of this.upTo(end));
  }

  async drain(): Promise<void> {
    while ((await this.some(Number.POSITIVE_INFINITY)) !== undefined);
  }

  /** The next bytes, at most so many; undefined at the end. */
  private async some(most: number): Promise<Buffer | undefined> {
    while (this.rest.length === 0) {
      const next = await this.source.next()
      if (next.done) return undefined
      this.rest = next.value
    }
    const part = this.rest.subarray(0, Math.min(most, this.rest.length))
    this.rest = this.rest.subarray(part.length)
    this.offset += part.length
    return part
  }
}
