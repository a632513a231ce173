import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { Docker } from '../../src/engine/docker.ts'
import { loadNodeImage, type NodeArchive, readNodeArchive } from '../../src/images/node-archive.ts'
import type { Result } from '../../src/lib/run.ts'
import { layer, layoutOf } from './layout.ts'

const folder = mkdtempSync(join(tmpdir(), 'node-archive-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'node.tar')

const NODE = { name: 'docker.io/kindest/node:v1.34.0', layers: [layer('node')] }

function read(...images: Parameters<typeof layoutOf>[0]): Promise<NodeArchive> {
  writeFileSync(path, layoutOf(images).tar)
  return readNodeArchive(path, 'amd64')
}

/** A docker that gives these answers, one after the other, and notes what it was asked. */
function dockerOf(...answers: Partial<Result>[]) {
  const asked: string[] = []
  const docker = {
    try: async (args: readonly string[]) => {
      asked.push(args.join(' '))
      return { code: 0, stdout: '', stderr: '', ...answers.shift() }
    },
  } as Partial<Docker> as Docker
  return { docker, asked, load: async () => loadNodeImage(docker, await read(NODE), () => {}) }
}

describe('a node image as an archive', () => {
  test('is known by the name in it', async () => {
    expect((await read(NODE)).image).toMatchObject({ reference: 'kindest/node:v1.34.0' })
    expect((await read(NODE, { ...NODE, name: 'node:2' })).image.reference).toBe('kindest/node:v1.34.0')
  })

  test('among others is refused', async () => {
    await expect(read(NODE, { name: 'app:1', layers: [layer('app')] })).rejects.toThrow(
      `node-image: ${path} holds several images (kindest/node:v1.34.0, app:1); write one with the node image alone`,
    )
  })

  test('is loaded where the engine lacks it, or has another one of that name', async () => {
    for (const has of [{ code: 1 }, { stdout: 'sha256:other' }]) {
      const { load, asked } = dockerOf(has)
      await load()
      expect(asked[1]).toBe(`load --quiet --input=${path}`)
    }
  })

  test('is not loaded where the engine has it, by whichever of its digests', async () => {
    for (const id of (await read(NODE)).image.ids) {
      const { load, asked } = dockerOf({ stdout: `${id}\n` })
      await load()
      expect(asked).toHaveLength(1)
    }
  })

  test('that the engine does not take is named, with what it said', async () => {
    const { load } = dockerOf({ code: 1 }, { code: 1, stderr: 'a\nno space left on device\n' })
    await expect(load()).rejects.toThrow(`node-image: the engine does not load ${path}: no space left on device; look`)
  })
})
