import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { BadTar, readTar, TAR_END, tarFile, tarHeader } from '../../src/images/tar.ts'

const folder = mkdtempSync(join(tmpdir(), 'tar-'))
afterAll(() => rmSync(folder, { recursive: true }))

const LONG = `${'folder/'.repeat(16)}${'n'.repeat(120)}`

/** What GNU tar makes of some files, in one of its formats. */
function made(format: string): Buffer {
  const root = join(folder, format)
  mkdirSync(join(root, LONG, '..'), { recursive: true })
  writeFileSync(join(root, 'a'), 'one')
  writeFileSync(join(root, 'empty'), '')
  writeFileSync(join(root, LONG), 'x'.repeat(70_000))
  const { stdout, status } = spawnSync('tar', [`--format=${format}`, '-C', root, '-c', 'a', 'empty', `./${LONG}`], {
    maxBuffer: 1e7,
  })
  expect(status).toBe(0)
  return stdout
}

/** The bytes in pieces of a length, as a pipe gives them. */
async function* pieces(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function read(bytes: Buffer, length = 1000): Promise<{ name: string; size: number; text: string }[]> {
  const found = []
  for await (const { name, size, body } of readTar(pieces(bytes, length))) {
    const chunks = []
    for await (const chunk of body()) chunks.push(chunk)
    found.push({ name, size, text: Buffer.concat(chunks).toString() })
  }
  return found
}

describe('a tar stream', () => {
  test.each(['posix', 'gnu'])(
    'in the format %s is read, long names and all, however it is cut into pieces',
    async format => {
      const bytes = made(format)
      for (const length of [7, 512, 65_536, bytes.length]) {
        expect(await read(bytes, length)).toEqual([
          { name: 'a', size: 3, text: 'one' },
          { name: 'empty', size: 0, text: '' },
          { name: LONG, size: 70_000, text: 'x'.repeat(70_000) },
        ])
      }
    },
  )

  test('is what we write, of any size', async () => {
    const name = `blobs/sha256/${'a'.repeat(64)}`
    expect(
      await read(
        Buffer.concat([tarFile(name, Buffer.from('{}')), tarFile('index.json', Buffer.alloc(512, 'x')), TAR_END]),
      ),
    ).toEqual([
      { name, size: 2, text: '{}' },
      { name: 'index.json', size: 512, text: 'x'.repeat(512) },
    ])
    for (const size of [8 ** 11 - 1, 8 ** 11, 3e13]) {
      const { value } = await readTar(pieces(tarHeader(name, size), 512)).next()
      expect(value).toMatchObject({ name, size, isFile: true })
    }
  })

  test('passes over what nobody reads, and tells where it is', async () => {
    const bytes = made('posix')
    const found = []
    for await (const { name, offset } of readTar(pieces(bytes, 999)))
      found.push([name, bytes.toString('utf8', offset, offset + 3)])
    expect(found).toEqual([
      ['a', 'one'],
      ['empty', expect.anything()],
      [LONG, 'xxx'],
    ])
  })

  test('that breaks off anywhere is told from one that is whole', async () => {
    const bytes = made('posix')
    const end = bytes.findLastIndex(byte => byte !== 0)
    for (const length of [0, 100, 512, 700, 1536, 5000, end - 60_000, end]) {
      await expect(read(bytes.subarray(0, length)), `${length}`).rejects.toMatchObject({ truncated: true })
    }
  })

  test('that is something else is told from one that breaks off', async () => {
    for (const bytes of [Buffer.alloc(5000, 'text'), Buffer.from('{"a":1}'.repeat(1000))]) {
      await expect(read(bytes)).rejects.toMatchObject({ message: 'is no tar archive', truncated: false })
    }
  })

  test('with a header that asks for all memory is refused', async () => {
    const header = tarHeader('x', 4e9)
    header[156] = 'x'.charCodeAt(0)
    // The sum goes by the type, too.
    header.write(
      `${(Number.parseInt(header.toString('latin1', 148, 154), 8) + 'x'.charCodeAt(0) - 0x30).toString(8).padStart(6, '0')}\0 `,
      148,
    )
    await expect(read(Buffer.concat([header, Buffer.alloc(512)]))).rejects.toThrow(BadTar)
  })
})
