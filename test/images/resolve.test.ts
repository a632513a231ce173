import { describe, expect, test } from 'vitest'
import type { Docker } from '../../src/engine/docker.ts'
import { ensureNodeImages, resolveImages, warnOfLatest } from '../../src/images/resolve.ts'
import { messageOf } from '../../src/lib/problem.ts'
import type { Result } from '../../src/lib/run.ts'
import { dockerOf, no, ok, worldOf } from './fake-docker.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

/** What the engine says of an image. */
const has = (tags: readonly string[] | null = [], more: object = {}): string =>
  `${JSON.stringify({ tags, os: 'linux', architecture: 'arm64', ...more })}\n`
const lacks = (...names: string[]): string =>
  names.map(name => `Error response from daemon: No such image: ${name}\n`).join('')

/** Resolves images by docker's answers: what is asked and said, what becomes of it, and whether before or after pulls began. */
async function resolve(images: readonly string[], answers: readonly Result[], pull: 'missing' | 'never' = 'missing') {
  const { docker, asked } = dockerOf(...answers)
  const { world, said } = worldOf()
  let begun = false
  const outcome = await resolveImages(docker, { images, pull }, world)
    .then(({ images: all }) => {
      begun = true
      return all
    })
    .then(all => [...all.keys()])
    .catch(messageOf)
  return { asked, said, outcome, begun }
}

describe('images to load', () => {
  test('are taken from the engine where it has them', async () => {
    const { asked, outcome } = await resolve(
      ['app:ci', 'web@sha256:'.concat('b'.repeat(64))],
      [ok(has(['app:ci']) + has())],
    )
    expect(asked).toEqual([`image inspect app:ci web@sha256:${'b'.repeat(64)}`])
    expect(outcome).toEqual(['app:ci', `web@sha256:${'b'.repeat(64)}`])
  })

  test('of which a mirror gives what a digest names are had by the name of the mirror', async () => {
    const digest = `sha256:${'b'.repeat(64)}`
    const mirror = { upstream: 'docker.io', scheme: 'https', host: 'mirror.example', path: '' } as const
    const { world } = worldOf({ mirrors: [{ ...mirror, credentials: undefined, ca: undefined }] })
    const { docker, asked } = dockerOf(no(lacks(`web@${digest}`)), no('absent'), ok(), ok(has()))
    const { images } = await resolveImages(docker, { images: [`web@${digest}`], pull: 'missing' }, world)
    expect([...(await images)]).toEqual([[`web@${digest}`, `mirror.example/library/web@${digest}`]])
    expect(asked.at(-1)).toBe(`image inspect mirror.example/library/web@${digest}`)
  })

  test('without any the engine is not asked', async () => {
    expect(await resolve([], [])).toMatchObject({ asked: [], outcome: [] })
  })

  test('that are one, however written, are one', async () => {
    const { asked, outcome } = await resolve(['app:1', 'docker.io/library/app:1', 'app:2'], [ok(has() + has())])
    expect(asked).toEqual(['image inspect app:1 app:2'])
    expect(outcome).toEqual(['app:1', 'app:2'])
  })

  test('that it lacks are pulled, and no others', async () => {
    const { asked, outcome } = await resolve(
      ['app:ci', 'registry:5000/web:1', 'db:1'],
      [no(lacks('registry:5000/web:1', 'db:1'), has(['app:ci'])), ok(), ok(), ok(has() + has())],
    )
    expect(asked.slice(0, 3)).toEqual([
      'image inspect app:ci registry:5000/web:1 db:1',
      'pull registry:5000/web:1',
      'pull db:1',
    ])
    expect(outcome).toEqual(['app:ci', 'registry:5000/web:1', 'db:1'])
  })

  test('that cannot be pulled are told of when pulls have begun', async () => {
    const { begun, outcome } = await resolve(['gone:1'], [no(lacks('gone:1')), no('manifest unknown')])
    expect(begun).toBe(true)
    expect(outcome).toMatch(/^images: the engine cannot pull gone:1: manifest unknown; build/)
  })

  test('that it lacks are all named where it may not pull', async () => {
    const { asked, begun, outcome } = await resolve(
      ['app:ci', 'gone:1', 'gone:2'],
      [no(lacks('gone:1', 'gone:2'), has(['app:ci']))],
      'never',
    )
    expect(asked).toHaveLength(1)
    expect(begun).toBe(false)
    expect(outcome).toBe(
      'images: the engine has no gone:1, gone:2, and pull is never; build or pull it in a step before this one, on this engine (tcp://docker:2375)',
    )
  })

  test('that are named by an id are refused: no pod could name them', async () => {
    const { outcome } = await resolve(['2dc06bb5d020'], [ok(has(['web:v1']))])
    expect(outcome).toMatch(/^images: 2dc06bb5d020 is an id, .*; tag it \(docker tag\) and name the tag$/)
  })

  test('whose name looks like an id are fine', async () => {
    expect((await resolve(['cafe00'], [ok(has(['cafe00:latest']))])).outcome).toEqual(['cafe00'])
  })

  test('for another platform are refused with both, those that are pulled too', async () => {
    const sentence =
      'images: app:ci is for linux/amd64, and the nodes on this engine are linux/arm64; build or pull it for linux/arm64 (--platform)'
    const other = has(['app:ci'], { architecture: 'amd64' })
    expect(await resolve(['app:ci'], [ok(other)])).toMatchObject({ begun: false, outcome: sentence })
    expect(await resolve(['app:ci'], [no(lacks('app:ci')), ok(), ok(other)])).toMatchObject({ outcome: sentence })
  })

  test('without the content of their layers are refused', async () => {
    const { outcome } = await resolve(['app:ci'], [ok(has(['app:ci'], { os: '', architecture: '' }))])
    expect(outcome).toMatch(
      /^images: the engine has app:ci without the content of its layers, .*; remove that image and/,
    )
  })

  test('are all refused at once', async () => {
    const { outcome } = await resolve(['2dc06bb5d020', 'app:ci'], [ok(has([]) + has([], { architecture: 'amd64' }))])
    expect(outcome).toMatch(/^images: 2dc06bb5d020 is an id.*\nimages: app:ci is for linux\/amd64/)
  })

  test('of which the engine says nothing are a failure, without what may be secret', async () => {
    const { outcome } = await resolve(['app:ci'], [no('a\nGet "http://me:secret@docker/x": EOF')])
    expect(outcome).toBe('images: the engine does not say which of them it has: Get "http://***@docker/x": EOF')
  })
})

describe('the tag latest', () => {
  test.each([
    [['app'], 'app'],
    [['app:latest', 'web:1', `db:latest@${DIGEST}`], `app:latest, db:latest@${DIGEST}`],
  ])('of %j gets a warning that names imagePullPolicy', async (images, named) => {
    const { said } = await resolve(images, [ok(has().repeat(images.length))])
    expect(said).toEqual([expect.stringContaining(`pods pull ${named} again`)])
    expect(said[0]).toMatch(/^warning: images: .*imagePullPolicy/)
  })

  test('of an image in an archive does, too', () => {
    const { world, said } = worldOf()
    warnOfLatest(['app:latest', 'web:1'], world)
    expect(said).toEqual([expect.stringContaining('pods pull app:latest again')])
  })

  test('is not that of another tag or of a digest alone', async () => {
    expect((await resolve(['app:1', `db@${DIGEST}`], [ok(has() + has())])).said).toEqual([])
  })
})

describe('the node image', () => {
  const { world } = worldOf()
  const ensure = (docker: Docker): Promise<unknown> => ensureNodeImages(docker, ['kindest/node:v1.34.0'], world)

  test.each([
    ['kindest/node:v1.34.0', 'kindest/node:v1.34.0', 'mirror.example/kindest/node:v1.34.0'],
    [`kindest/node@${DIGEST}`, `mirror.example/kindest/node@${DIGEST}`, `mirror.example/kindest/node@${DIGEST}`],
  ])('%s that a mirror gives is run as %s', async (reference, name, pulled) => {
    const mirror = { upstream: 'docker.io', scheme: 'https', host: 'mirror.example', path: '' } as const
    const { world: mirrored } = worldOf({ mirrors: [{ ...mirror, credentials: undefined, ca: undefined }] })
    const { docker, asked } = dockerOf(
      no('absent'),
      no('absent'),
      ok(),
      ...Array.from({ length: 4 }, () => ok('arm64\n')),
    )
    expect([...(await ensureNodeImages(docker, [reference], mirrored))]).toEqual([[reference, name]])
    expect(asked).toContain(`pull ${pulled}`)
    expect(asked.at(-1)).toBe(`image inspect ${name}`)
  })

  test('is not pulled where the engine has it', async () => {
    const { docker, asked } = dockerOf(ok('arm64\n'))
    await ensure(docker)
    expect(asked).toHaveLength(1)
  })

  test('is pulled where it lacks it, once more after a passing failure', async () => {
    const { docker, asked } = dockerOf(no('No such image'), no('503 Service Unavailable'), ok(), ok('arm64\n'))
    await ensure(docker)
    expect(asked.slice(1, 3)).toEqual(['pull kindest/node:v1.34.0', 'pull kindest/node:v1.34.0'])
  })

  test("of another architecture than the engine's is refused, with both", async () => {
    await expect(ensure(dockerOf(ok('amd64\n')).docker)).rejects.toThrow(
      'node-image: kindest/node:v1.34.0 is for amd64, and the engine runs arm64; name one for arm64',
    )
  })

  test('that cannot be pulled is named with what the engine said and what to do', async () => {
    const { docker } = dockerOf(no('No such image'), no('a\nlookup registry: no such host\n'))
    await expect(ensure(docker)).rejects.toThrow(
      /^node-image: the engine cannot pull kindest\/node:v1\.34\.0: lookup registry: no such host; it is the engine/,
    )
  })
})
