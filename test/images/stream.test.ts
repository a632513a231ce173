import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { type Docker, dockerAt } from '../../src/engine/docker.ts'
import { TURN } from '../../src/engine/images.ts'
import { type Archive, readArchive } from '../../src/images/archive.ts'
import { LIMITS } from '../../src/images/feed.ts'
import type { Loaded } from '../../src/images/loaded.ts'
import { chainIds } from '../../src/images/oci.ts'
import { streamImages } from '../../src/images/stream.ts'
import { readTar, TAR_END, tarFile } from '../../src/images/tar.ts'
import { type Argv, createRunner, type Result, type Runner } from '../../src/lib/run.ts'
import { type FakeLayout, layer, layoutOf, sha256 } from './layout.ts'

const folder = mkdtempSync(join(tmpdir(), 'stream-'))
afterAll(() => rmSync(folder, { recursive: true }))

const BASE = layer('base')
const engine = layoutOf([
  { name: 'docker.io/library/a:1', layers: [BASE, layer('a')] },
  { name: 'docker.io/library/b:1', layers: [BASE, layer('b')] },
])
const [a, b] = engine.images

interface Node {
  readonly images?: readonly { id: string; repoTags: string[]; target?: string | undefined }[]
  readonly snapshots?: readonly string[]
  readonly blobs?: readonly string[]
}

const debugged: string[] = []
beforeEach(() => {
  debugged.length = 0
})

/**
 * A docker that saves a layout, and in which importing is a small shell script: it finds the node in $NODE, and how many
 * imports began there before in $TIME. What an import reads is kept where `received` finds it.
 */
function dockerOf(
  given: {
    readonly layout?: FakeLayout
    readonly nodes?: Readonly<Record<string, Node>>
    readonly save?: string
    readonly load?: string
    /** Bytes of each image, as the engine tells them. */
    readonly size?: number
    /** Where the classic store has them unpacked. */
    readonly unpacked?: object
    /** What a container beside the engine prints. */
    readonly beside?: Result
  } = {},
) {
  const layout = given.layout ?? engine
  writeFileSync(join(folder, 'engine.tar'), layout.tar)
  const real = createRunner({ env: process.env })
  const started: string[] = []
  const besides: string[] = []
  const replaced: Runner = {
    ...real,
    run: async (argv: Argv) => {
      const [, verb, node = ''] = argv
      const ok = (stdout: string) => ({ code: 0, stdout, stderr: '' })
      if (verb === 'image')
        return ok(
          layout.images
            .map(i => JSON.stringify({ id: i.config, size: given.size, layers: i.diffIds, unpacked: given.unpacked }))
            .join('\n'),
        )
      const { images = [], snapshots = [], blobs = [] } = given.nodes?.[node] ?? {}
      return ok(
        [
          JSON.stringify({ images }),
          `REF TYPE DIGEST \n${images.map(({ repoTags, target }) => `${repoTags} type ${target} 1 MiB \n`).join('')}`,
          'overlayfs',
          `KEY PARENT KIND \n${snapshots.map(id => `${id} ${id} Committed \n`).join('')}`,
          blobs.join('\n'),
        ].join('-- kind-in-dind --\n'),
      )
    },
    try: async (argv: Argv, options) => {
      started.push(argv.slice(1, 2).join(' '))
      if (argv[1] === 'run') besides.push(argv.join(' '))
      for (const line of given.beside?.stdout.split('\n') ?? []) options?.onLine?.(line)
      return given.beside ?? { code: 125, stdout: '', stderr: 'no such socket' }
    },
    start: (argv: Argv) => {
      const [, verb, , node = ''] = argv
      started.push(argv.slice(1).join(' '))
      if (verb === 'save') return real.start(['/bin/sh', '-c', given.save ?? 'cat engine.tar'], { cwd: folder })
      const time = started.filter(line => line.startsWith(`exec --interactive ${node} `)).length
      const load = `${given.load ?? ''}\ncat >"$NODE.tar"`
      return real.start(['/bin/sh', '-c', load], { cwd: folder, env: { NODE: node, TIME: `${time}` } })
    },
  }
  return { docker: dockerAt({ env: {}, aroundProxy: {} }, replaced), started, besides }
}

/** What the engine has by the names that are asked for. */
const had = (references: readonly string[]): ReadonlyMap<string, string> => new Map(references.map(one => [one, one]))

function stream(
  docker: Docker,
  references: readonly string[],
  nodes: readonly string[],
  limits = LIMITS,
): Promise<readonly Loaded[]> {
  return streamImages(docker, { references: had(references), archives: [] }, nodes, {
    debug: line => void debugged.push(line),
    limits,
  })
}

/** What came to a node: the digests of blobs larger than a config, and the images by name. */
async function received(node: string): Promise<{ layers: string[]; images: Record<string, string> }> {
  const layers: string[] = []
  const images: Record<string, string> = {}
  const bytes = readFileSync(join(folder, `${node}.tar`))
  for await (const { name, size, body } of readTar(
    (async function* () {
      yield bytes
    })(),
  )) {
    const content: Buffer[] = []
    for await (const chunk of body()) content.push(chunk)
    if (size >= 100_000) layers.push(name.replace('blobs/sha256/', 'sha256:'))
    if (name !== 'index.json') continue
    for (const { digest, annotations } of JSON.parse(Buffer.concat(content).toString()).manifests) {
      images[annotations?.['io.containerd.image.name'] ?? '?'] = digest
    }
  }
  return { layers: layers.sort(), images }
}

const sorted = (...ids: readonly (string | undefined)[]): unknown[] => [...new Set(ids)].sort()
const all = sorted(...(a?.diffIds ?? []), ...(b?.diffIds ?? []))

describe('streaming images into nodes', () => {
  test('an image that the engine has by a mirror is asked for by that, and pods have it by their own', async () => {
    const { docker, started } = dockerOf({ layout: layoutOf([{ layers: [layer('x')] }]) })
    const digest = `sha256:${'d'.repeat(64)}`
    const references = new Map([[`a@${digest}`, `mirror.example/a@${digest}`]])
    await streamImages(docker, { references, archives: [] }, ['one'], { debug: () => {} })
    expect(started.filter(line => line.startsWith('save'))).toEqual([`save -- mirror.example/a@${digest}`])
    expect(Object.keys((await received('one')).images)).toEqual([`docker.io/library/a@${digest}`])
  })

  test('a reference without a tag is one image, and not all that its repository has', async () => {
    const { docker, started } = dockerOf({ layout: layoutOf([{ name: 'docker.io/library/a:latest', layers: [] }]) })
    await stream(docker, ['a'], ['one'])
    expect(started.filter(line => line.startsWith('save'))).toEqual(['save -- a:latest'])
  })

  test('one read of the engine reaches every node whole, under the names by which pods ask', async () => {
    const { docker, started } = dockerOf()
    const loaded = await stream(docker, ['a:1', 'b:1'], ['one', 'two', 'three'])
    for (const node of ['one', 'two', 'three']) {
      expect(await received(node)).toEqual({
        layers: all,
        images: { 'docker.io/library/a:1': a?.top, 'docker.io/library/b:1': b?.top },
      })
    }
    expect(started.filter(line => line.startsWith('save'))).toEqual(['save -- a:1 b:1'])
    const imports = started.filter(line => line.startsWith('exec'))
    expect(imports).toHaveLength(3)
    for (const line of imports) expect(line).toMatch(/ flock .*import\.lock .* ctr .* images import /)
    expect(loaded).toMatchObject([
      { image: 'a:1', had: 0, brought: 3, size: 200_000, sent: 600_000 },
      { image: 'b:1', had: 0, brought: 3, size: 200_000, sent: 300_000 },
    ])
  })

  test('without images the engine is not asked', async () => {
    const { docker, started } = dockerOf()
    expect(await stream(docker, [], ['one'])).toEqual([])
    expect(started).toEqual([])
  })

  test('a layer that a node has unpacked is not sent to it, and to no other is it missing', async () => {
    const { docker } = dockerOf({ nodes: { one: { snapshots: chainIds(a?.diffIds ?? []).slice(0, 1) } } })
    const loaded = await stream(docker, ['a:1', 'b:1'], ['one', 'two'])
    expect((await received('one')).layers).toEqual(sorted(a?.diffIds[1], b?.diffIds[1]))
    expect((await received('two')).layers).toEqual(all)
    expect(loaded).toMatchObject([{ sent: 300_000 }, { sent: 200_000 }])
  })

  test('one that lies there packed is not sent either', async () => {
    const { docker } = dockerOf({ nodes: { one: { blobs: b?.diffIds ?? [] } } })
    await stream(docker, ['a:1', 'b:1'], ['one'])
    expect((await received('one')).layers).toEqual(sorted(a?.diffIds[1]))
  })

  test('one that a node has on top of another layer only is sent: it is another snapshot', async () => {
    const layout = layoutOf([{ name: 'docker.io/library/a:1', layers: [layer('other'), BASE] }])
    const base = layout.images[0]?.diffIds[1] ?? ''
    const { docker } = dockerOf({ layout, nodes: { one: { snapshots: [base] } } })
    await stream(docker, ['a:1'], ['one'])
    expect((await received('one')).layers).toContain(base)
  })

  test('an image whose name and content a node has is not sent to it; where all have all, the engine is not read', async () => {
    const has = [{ id: a?.config ?? '', repoTags: ['docker.io/library/a:1'] }]
    const { docker, started } = dockerOf({ nodes: { one: { images: has }, two: { images: has } } })
    expect(await stream(docker, ['a:1'], ['one', 'two'])).toMatchObject([{ had: 2, brought: 0 }])
    expect(started).toEqual([])
    await stream(docker, ['a:1', 'b:1'], ['one', 'three'])
    expect(started[0]).toBe('save -- b:1 a:1')
    expect(Object.keys((await received('one')).images)).toEqual(['docker.io/library/b:1'])
    expect(Object.keys((await received('three')).images)).toEqual(['docker.io/library/a:1', 'docker.io/library/b:1'])
  })

  test('one whose name is there with another content is sent, and one whose content has another name', async () => {
    const old = [{ id: b?.config ?? '', repoTags: ['docker.io/library/a:1'] }]
    const { docker } = dockerOf({ nodes: { one: { images: old } } })
    await stream(docker, ['a:1', 'b:1'], ['one'])
    expect(Object.keys((await received('one')).images)).toHaveLength(2)
  })

  test('of an engine that calls an image by its index it is known by that', async () => {
    const layout = layoutOf([{ name: 'docker.io/library/a:1', layers: [BASE], index: true }])
    const image = layout.images[0]
    const told = { ...layout, images: [{ config: image?.top ?? '', top: '', diffIds: image?.diffIds ?? [] }] }
    const has = [
      {
        id: 'sha256:config',
        repoTags: ['docker.io/library/a:1'],
        target: image?.top,
      },
    ]
    const { docker } = dockerOf({ layout: told, nodes: { two: { images: has } } })
    expect(await stream(docker, ['a:1'], ['one', 'two'])).toMatchObject([
      { had: 1, brought: 1, size: 100_000, sent: 100_000 },
    ])
    expect((await received('one')).images).toEqual({ 'docker.io/library/a:1': image?.top })
  })

  test('an image that is named by a digest has that name in the node', async () => {
    const layout = layoutOf([{ layers: [BASE] }])
    const digest = `sha256:${'d'.repeat(64)}`
    await stream(dockerOf({ layout }).docker, [`web@${digest}`], ['one'])
    expect((await received('one')).images).toEqual({ [`docker.io/library/web@${digest}`]: layout.images[0]?.top })
  })

  describe('beside the engine', () => {
    const large = 100_000_000
    const beside = { cluster: 'c', labels: {}, socket: '/docker.sock', writesLayouts: true }
    const both = { code: 0, stdout: 'whole\ndone 0\ndone 1', stderr: '' }
    const go = (docker: Docker, references = ['a:1', 'b:1']): Promise<readonly Loaded[]> =>
      streamImages(docker, { references: had(references), archives: [] }, ['one', 'two'], {
        debug: line => void debugged.push(line),
        beside,
      })

    test('is where much goes to nodes that have nothing of it', async () => {
      const { docker, started } = dockerOf({ size: large, beside: both })
      expect(await go(docker)).toMatchObject([
        { image: 'a:1', had: 0, brought: 2, size: large, sent: undefined },
        { image: 'b:1', had: 0, brought: 2, size: large, sent: undefined },
      ])
      expect(started).toEqual(['run'])
    })

    test('is where a part goes too, to each node what it lacks, if layers have the digests of their content', async () => {
      const nodes = { two: { snapshots: chainIds(a?.diffIds ?? []).slice(0, 1) } }
      const { docker, besides } = dockerOf({ size: large, beside: both, unpacked: {}, nodes })
      await go(docker)
      expect(besides).toEqual([
        expect.stringMatching(
          new RegExp(` overlayfs -- .* overlayfs blobs/${a?.diffIds[0]?.replace(':', '/')} --$`, 's'),
        ),
      ])
      const other = dockerOf({ size: large, beside: both, nodes })
      await go(other.docker)
      expect(other.besides).toEqual([])
    })

    test('a node that did not get it there gets a read of its own', async () => {
      const { docker, started } = dockerOf({ size: large, beside: { ...both, stdout: 'whole\ndone 0\nfailed 1' } })
      await go(docker)
      expect(started.map(line => line.split(' ').slice(0, 3).join(' '))).toEqual([
        'run',
        'save -- a:1',
        'exec --interactive two',
      ])
      expect((await received('two')).layers).toEqual(all)
    })

    test('is left where it is not open, and all go through the step', async () => {
      const { docker, started } = dockerOf({ size: large })
      expect(await go(docker)).toMatchObject([{ brought: 2, sent: 400_000 }, { brought: 2 }])
      expect(started.slice(0, 3)).toEqual(['run', 'rm', 'save -- a:1 b:1'])
      expect(debugged.join()).toMatch(/^The images do not go beside the engine: .*no such socket/)
    })

    test.each<[string, Parameters<typeof dockerOf>[0], string[]]>([
      ['it is little', { size: 10_000 }, ['a:1']],
      [
        'a node has one of the images',
        { nodes: { two: { images: [{ id: b?.config ?? '', repoTags: ['docker.io/library/b:1'] }] } } },
        ['a:1', 'b:1'],
      ],
      ['an image is named by its digest', {}, ['a:1', `b@sha256:${'d'.repeat(64)}`]],
    ])('is not taken where %s', async (_, given, references) => {
      const { docker, started } = dockerOf({ size: large, beside: both, ...given })
      await go(docker, references)
      expect(started).not.toContain('run')
    })
  })

  describe('from archives', () => {
    const write = async (name: string, content: Buffer): Promise<Archive> => {
      writeFileSync(join(folder, name), content)
      return readArchive(join(folder, name), 'images', 'amd64')
    }
    const bring = (docker: Docker, ...archives: readonly Archive[]): Promise<readonly Loaded[]> =>
      streamImages(docker, { references: had(['a:1']), archives }, ['one', 'two'], { debug: () => {} })

    test('they come as those of the engine do, one source after the other', async () => {
      const archive = await write(
        'b.tar.gz',
        gzipSync(layoutOf([{ name: 'docker.io/library/b:1', layers: [BASE, layer('b')] }]).tar),
      )
      const content = {
        snapshots: [sha256(BASE)],
        images: [{ id: a?.config ?? '', repoTags: ['docker.io/library/a:1'] }],
      }
      const { docker, started } = dockerOf({ nodes: { one: content, two: content } })
      expect(await bring(docker, archive)).toMatchObject([
        { image: 'a:1', had: 2 },
        { image: `b:1 (${archive.path})`, had: 0, brought: 2, size: 200_000, sent: 200_000 },
      ])
      expect(started.filter(line => line.startsWith('save'))).toEqual([])
      expect(await received('two')).toEqual({
        layers: b?.diffIds.slice(1),
        images: { 'docker.io/library/b:1': b?.top },
      })
    })

    test('one that is another file by now is the cause', async () => {
      const archive = await write('b.tar', engine.tar)
      writeFileSync(archive.path, 'something else')
      const has = { images: [{ id: a?.config ?? '', repoTags: ['docker.io/library/a:1'] }] }
      const { docker } = dockerOf({ nodes: { one: has, two: has } })
      await expect(bring(docker, archive)).rejects.toThrow(
        `images: ${archive.path} cannot be read to its end: breaks off`,
      )
    })
  })

  test('an engine from before OCI layouts is passed on as it is', async () => {
    const tar = Buffer.concat([
      tarFile('0123/VERSION', Buffer.from('1.0')),
      tarFile('0123/layer.tar', BASE),
      tarFile('manifest.json', Buffer.from('[]')),
      TAR_END,
    ])
    const { docker } = dockerOf({ layout: { ...engine, tar }, nodes: { one: { blobs: a?.diffIds ?? [] } } })
    expect(await stream(docker, ['a:1'], ['one'])).toMatchObject([{ brought: 1, size: undefined }])
    expect(readFileSync(join(folder, 'one.tar'))).toEqual(tar)
  })

  test('a node that does not take the images without the layers that it has gets all', async () => {
    const load = 'if [ "$TIME" = 1 ]; then cat >/dev/null; echo not found >&2; exit 1; fi'
    const { docker } = dockerOf({ load, nodes: { one: { snapshots: chainIds(a?.diffIds ?? []) } } })
    await stream(docker, ['a:1'], ['one'])
    expect((await received('one')).layers).toEqual(all)
    expect(debugged.join()).toMatch(
      /^one did not take the images without the layers that it has, so it gets all: .*not found/,
    )
  })

  test('a node that dies is named, and the others get all', async () => {
    const load = 'if [ "$NODE" = two ]; then head -c 1000 >/dev/null; echo broken >&2; exit 3; fi'
    await expect(stream(dockerOf({ load }).docker, ['a:1'], ['one', 'two', 'three'])).rejects.toThrow(
      /^images: the import failed in two: .*broken$/s,
    )
    for (const node of ['one', 'three']) expect((await received(node)).layers).toEqual(all)
  })

  test('when every node dies it ends, and each is named', async () => {
    const load = 'head -c 1000 >/dev/null; echo broken in $NODE >&2; exit 3'
    const failed = stream(dockerOf({ load }).docker, ['a:1'], ['one', 'two'])
    await expect(failed).rejects.toThrow(/one: .*broken in one; two: .*broken in two/s)
  })

  test('an engine that breaks off is the cause, and no node takes the half for the whole', async () => {
    const load = 'trap "echo ended >&2; exit 9" TERM; cat >/dev/null; echo imported >imported'
    const { docker } = dockerOf({ save: 'head -c 150000 engine.tar; echo lost >&2; exit 1', load })
    await expect(stream(docker, ['a:1'], ['one'])).rejects.toThrow(
      /^images: the engine does not give them out: .*lost$/,
    )
    expect(() => readFileSync(join(folder, 'imported'))).toThrow()
  })

  test.each([
    ['before it begins', 'exec sleep 60'],
    ['in the middle', 'head -c 5000 engine.tar; exec sleep 60'],
    ['at its end', 'cat engine.tar; exec >&-; exec sleep 60'],
  ])('does not wait for an engine that hangs %s: what came of it is not imported', async (_, save) => {
    const { docker } = dockerOf({ save, load: 'trap "" TERM; cat >/dev/null && exec sleep 60' })
    await expect(stream(docker, ['a:1'], ['one'], { ...LIMITS, begin: 2000, silence: 300 })).rejects.toThrow(
      /^images: the engine does not give them out: nothing came for (0\.3|2\.0)s$/,
    )
  })

  describe('does not wait for a node', () => {
    const large = layoutOf([{ name: 'docker.io/library/a:1', layers: [layer('large', 4_000_000)] }])
    const limits = { room: 100_000, lag: 300, stall: 1000, finish: 1000, begin: 60_000, silence: 60_000 }

    test('that takes nothing: it gets a read of its own when the others have all', async () => {
      const load = 'if [ "$NODE$TIME" = two1 ]; then sleep 60; fi'
      const { docker, started } = dockerOf({ layout: large, load })
      await stream(docker, ['a:1'], ['one', 'two', 'three'], limits)
      for (const node of ['one', 'two', 'three'])
        expect((await received(node)).layers).toEqual(large.images[0]?.diffIds)
      expect(started.filter(line => line.startsWith('save'))).toHaveLength(2)
      expect(debugged).toEqual(['two gets a read of its own'])
    })

    test('that another import has, but for that one: it waits its turn, and takes all then', async () => {
      const load = `echo ${TURN.waits}; if [ "$NODE" = two ]; then sleep 2.5; fi; echo ${TURN.begins}`
      const { docker } = dockerOf({ layout: large, load })
      await stream(docker, ['a:1'], ['one', 'two'], limits)
      for (const node of ['one', 'two']) expect((await received(node)).layers).toEqual(large.images[0]?.diffIds)
    })

    test('whose turn it is and that takes nothing: it is named', async () => {
      const { docker } = dockerOf({ layout: large, load: `echo ${TURN.waits}; echo ${TURN.begins}; sleep 60` })
      await expect(stream(docker, ['a:1'], ['one'], limits)).rejects.toThrow(
        'images: the import failed in one: it took nothing for 1 s',
      )
    })

    test('that takes nothing even then: it is named', async () => {
      const load = 'if [ "$NODE" = two ]; then sleep 60; fi'
      const { docker } = dockerOf({ layout: large, load })
      await expect(stream(docker, ['a:1'], ['one', 'two'], limits)).rejects.toThrow(
        'images: the import failed in two: it took nothing for 1 s',
      )
      expect((await received('one')).layers).toEqual(large.images[0]?.diffIds)
    })

    test('whose import took too long in it', async () => {
      const { docker } = dockerOf({ load: 'cat >/dev/null; exit 124' })
      await expect(stream(docker, ['a:1'], ['one'], limits)).rejects.toThrow(
        'images: the import failed in one: its import, and others in it, took more than 1800 s',
      )
    })

    test('that takes all and does not end', async () => {
      const load = 'cat >/dev/null; sleep 60'
      const { docker } = dockerOf({ load })
      await expect(stream(docker, ['a:1'], ['one'], limits)).rejects.toThrow(
        'images: the import failed in one: it did not end within 1 s of having all',
      )
    })
  })
})
