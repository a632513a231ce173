import { describe, expect, test } from 'vitest'
import type { Docker } from '../../src/engine/docker.ts'
import { checkImages, ensureNodeImages } from '../../src/images/present.ts'
import type { Result } from '../../src/lib/run.ts'

const ok = (stdout = ''): Result => ({ code: 0, stdout, stderr: '' })
const no = (stderr: string): Result => ({ code: 1, stdout: '', stderr })

/** A docker that gives these answers, one after the other, and notes what it was asked. */
function dockerOf(...answers: Result[]) {
  const asked: string[] = []
  const docker = {
    try: async (args: readonly string[]) => {
      asked.push(args.join(' '))
      return answers.shift() ?? ok()
    },
  } as Partial<Docker> as Docker
  return { docker, asked }
}

describe('images to load', () => {
  test('that the engine has are fine, and without any it is not asked', async () => {
    await checkImages(dockerOf(ok('["app:ci"]\n["web:v1","web:latest"]\n')).docker, ['app:ci', 'web'])
    const { docker, asked } = dockerOf()
    await checkImages(docker, [])
    expect(asked).toEqual([])
  })

  test('that it lacks are named, and no others', async () => {
    const { docker } = dockerOf(no('Error: No such image: gone:1\n'))
    await expect(checkImages(docker, ['app:ci', 'gone:1'])).rejects.toThrow(
      /^images: the engine has no gone:1; build or/,
    )
  })

  test('that are named by an id are refused: no pod could name them', async () => {
    const { docker } = dockerOf(ok('["web:v1"]\n'))
    await expect(checkImages(docker, ['2dc06bb5d020'])).rejects.toThrow(
      /^images: 2dc06bb5d020 is an id, .*; tag it \(docker tag\) and name the tag$/,
    )
  })

  test('whose name looks like an id are fine', async () => {
    await checkImages(dockerOf(ok('["cafe00:latest"]\n')).docker, ['cafe00'])
  })
})

describe('the node image', () => {
  const said: string[] = []
  const ensure = (docker: Docker): Promise<void> =>
    ensureNodeImages(docker, ['kindest/node:v1.34.0'], 'arm64', line => void said.push(line))

  test('is not pulled where the engine has it', async () => {
    const { docker, asked } = dockerOf(ok('arm64\n'))
    await ensure(docker)
    expect(asked).toHaveLength(1)
  })

  test('is pulled where it lacks it', async () => {
    const { docker, asked } = dockerOf(no('No such image'), ok(), ok('arm64\n'))
    await ensure(docker)
    expect(asked[1]).toBe('pull --quiet -- kindest/node:v1.34.0')
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
