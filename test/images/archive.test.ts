import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as zlib from 'node:zlib'
import { afterAll, describe, expect, test } from 'vitest'
import { type Archive, readArchive, splitImages } from '../../src/images/archive.ts'
import { compressionOf, looksLikeArchive } from '../../src/images/archive-file.ts'
import { TAR_END, tarFile } from '../../src/images/tar.ts'
import { layer, layoutOf, sha256 } from './layout.ts'

const folder = mkdtempSync(join(tmpdir(), 'archive-'))
afterAll(() => rmSync(folder, { recursive: true }))

let count = 0
function written(content: Buffer): string {
  const path = join(folder, `${count++}.tar`)
  writeFileSync(path, content)
  return path
}

function read(content: Buffer): Promise<Archive> {
  return readArchive(written(content), 'images', 'amd64')
}

const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))
const config = json({ os: 'linux', architecture: 'amd64', rootfs: { type: 'layers', diff_ids: [sha256('one')] } })

/** An archive as docker wrote it before 25, and as many build tools do. */
function dockerArchive(
  manifest: object,
  entries: Record<string, Buffer> = { 'c.json': config, '0/layer.tar': layer('one') },
): Buffer {
  return Buffer.concat([
    ...Object.entries(entries).map(([name, content]) => tarFile(name, content)),
    tarFile('manifest.json', json([{ Config: 'c.json', RepoTags: ['app:ci'], Layers: ['0/layer.tar'], ...manifest }])),
    TAR_END,
  ])
}

const two = layoutOf([
  { name: 'docker.io/library/a:1', layers: [layer('base'), layer('a')] },
  { name: 'docker.io/library/b:1', layers: [layer('base'), layer('b')], index: true },
])

/** Ours knows zstd where Node does; the tests run on such a Node too. */
const zstd = (zlib as { zstdCompressSync?: (content: Buffer) => Buffer }).zstdCompressSync

/** A frame of zstd's that decoders pass over, with four bytes in it. */
const SKIPPED = Buffer.from('502a4d180400000001020304', 'hex')

describe('an archive', () => {
  test.each([
    ['plain', 'none', (content: Buffer) => content],
    ['gzip', 'gzip', (content: Buffer) => zlib.gzipSync(content)],
    [
      'gzip in parts',
      'gzip',
      (content: Buffer) =>
        Buffer.concat([content.subarray(0, 999), content.subarray(999)].map(part => zlib.gzipSync(part))),
    ],
    ...(zstd === undefined
      ? []
      : [
          ['zstd', 'zstd', zstd] as const,
          [
            'zstd in frames, some of them to be skipped, as pzstd writes it',
            'zstd',
            (content: Buffer) =>
              Buffer.concat([content.subarray(0, 999), content.subarray(999)].flatMap(part => [SKIPPED, zstd(part)])),
          ] as const,
        ]),
  ] as const)('of several images, %s, is read', async (_, compression, pack) => {
    const archive = await read(pack(two.tar))
    expect(archive).toMatchObject({ compression, isLayout: true })
    const [a, b] = two.images
    expect(archive.images).toEqual([
      {
        reference: 'a:1',
        name: 'docker.io/library/a:1',
        ids: [a?.config, a?.top],
        diffIds: a?.diffIds,
        layers: new Map(a?.diffIds.map(id => [id, id])),
      },
      expect.objectContaining({ name: 'docker.io/library/b:1', ids: [b?.config, expect.any(String), b?.top] }),
    ])
  })

  test('as docker wrote it before OCI layouts is read', async () => {
    const hex = sha256(config).slice('sha256:'.length)
    const archive = await read(
      dockerArchive(
        { Config: `${hex}.json`, RepoTags: ['app:ci', 'host:5000/app:2'] },
        { [`${hex}.json`]: config, '0/layer.tar': layer('one') },
      ),
    )
    expect(archive).toMatchObject({
      isLayout: false,
      images: [
        { reference: 'app:ci', name: 'docker.io/library/app:ci', ids: [`sha256:${hex}`], diffIds: [sha256('one')] },
        { reference: 'host:5000/app:2', name: 'host:5000/app:2' },
      ],
    })
  })

  test('whose names begin with ./ is read', async () => {
    const bytes = Buffer.concat([
      tarFile('./c.json', config),
      tarFile('./0/layer.tar', layer('one')),
      tarFile('./manifest.json', json([{ Config: 'c.json', RepoTags: ['app:ci'], Layers: ['0/layer.tar'] }])),
      TAR_END,
    ])
    expect((await read(bytes)).images).toHaveLength(1)
  })

  test.each([
    [
      'tag',
      'ci',
      /holds an image without a name \(sha256:\w+\), by which no pod could ask for it; save it by its name/,
    ],
    ['whole reference', 'registry.example/app:ci', undefined],
  ])('with a %s in the annotation of OCI', async (_, ref, error) => {
    const { tar } = layoutOf([{ layers: [layer('x')], annotations: { 'org.opencontainers.image.ref.name': ref } }])
    if (error !== undefined) await expect(read(tar)).rejects.toThrow(error)
    else expect((await read(tar)).images).toMatchObject([{ name: ref }])
  })
})

describe('an archive is refused, by its name, that', () => {
  test.each<[string, Buffer, RegExp]>([
    ['is empty', Buffer.alloc(0), /is empty|breaks off/],
    ['is something else', Buffer.alloc(3000, 'text'), /is no tar archive; write it with docker save/],
    [
      'is a tar of something else',
      Buffer.concat([tarFile('a', json({})), TAR_END]),
      /has neither an index.json nor a manifest.json/,
    ],
    [
      'is packed with xz',
      Buffer.concat([Buffer.from('fd377a585a00', 'hex'), Buffer.alloc(99)]),
      /is packed with xz; pack it with gzip/,
    ],
    ['lacks a layer', dockerArchive({ Layers: ['gone.tar'] }), /lacks the layer gone.tar of app:ci/],
    ['lacks a config', dockerArchive({ Config: 'gone.json' }), /lacks the config gone.json of app:ci/],
    ['has no names', dockerArchive({ RepoTags: null }), /holds an image without a name \(c.json\)/],
    ['holds nothing', Buffer.concat([tarFile('manifest.json', json([])), TAR_END]), /holds no image/],
    [
      'is for another platform',
      layoutOf([{ name: 'docker.io/library/a:1', layers: [layer('x')], architecture: 'arm64' }]).tar,
      /holds a:1 for linux\/arm64, and the nodes on this engine are linux\/amd64; build it for linux\/amd64/,
    ],
    [
      'is for another platform, in the old format',
      dockerArchive({}, { 'c.json': json({ os: 'windows', architecture: 'amd64' }), '0/layer.tar': layer('one') }),
      /holds app:ci for windows\/amd64, and the nodes on this engine are linux\/amd64/,
    ],
  ])('%s', async (_, content, error) => {
    const path = written(content)
    const failed = readArchive(path, 'images', 'amd64')
    await expect(failed).rejects.toThrow(error)
    await expect(failed).rejects.toThrow(`images: ${path} `)
  })

  test('is not there, or is a folder', async () => {
    await expect(readArchive(join(folder, 'gone.tar'), 'images', 'amd64')).rejects.toThrow(/gone.tar is no file here/)
    await expect(readArchive(folder, 'node-image', 'amd64')).rejects.toThrow(/^node-image: .* is no file here/)
  })

  test.each([
    ['plain', (content: Buffer) => content],
    ['gzip', (content: Buffer) => zlib.gzipSync(content)],
    ...(zstd === undefined ? [] : [['zstd', zstd] as const]),
  ] as const)('breaks off, wherever it does: %s', async (_, pack) => {
    const whole = pack(layoutOf([{ name: 'docker.io/library/a:1', layers: [layer('x', 300_000)] }]).tar)
    for (const part of [0.1, 0.5, 0.9, 0.99]) {
      await expect(read(whole.subarray(0, Math.floor(whole.length * part))), `${part}`).rejects.toThrow(
        /breaks off before its end; write it again/,
      )
    }
  })

  test('is packed with zstd, where Node cannot unpack it', async () => {
    const path = written(Buffer.from('28b52ffd00000000', 'hex'))
    await expect(compressionOf(path, 'images', false)).rejects.toThrow(/packed with zstd, which Node \S+ cannot unpack/)
  })
})

test('what the option images was given is taken apart, each archive once', () => {
  const archives = ['app.tar', 'out/app.tar.gz', 'app.tgz', 'app.tar.zst', './app', '/app', 'image-file']
  const references = ['app:ci', 'host:5000/app.tar:1', 'app']
  expect(splitImages([...archives, ...references, 'app.tar'], path => path === 'image-file')).toEqual({
    archives,
    references,
  })
})

test('a file of a name that could be a reference is an archive where it is one', () => {
  const program = written(Buffer.alloc(1000, 'program'))
  const none = written(Buffer.alloc(0))
  const [plain, packed] = [written(two.tar), written(zlib.gzipSync(two.tar))]
  for (const path of [program, none]) expect(looksLikeArchive(path)).toBe(false)
  for (const path of [plain, packed]) expect(looksLikeArchive(path)).toBe(true)
})
