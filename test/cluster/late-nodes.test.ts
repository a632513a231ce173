import { expect, test } from 'vitest'
import { plannedContainers, removeLateNodes } from '../../src/cluster/late-nodes.ts'
import type { Docker } from '../../src/engine/docker.ts'
import type { Result } from '../../src/lib/run.ts'
import { dockerThat, no, ok } from '../answers.ts'
import { aPlan } from '../builders.ts'

const plan = aPlan({ options: { name: 'c', workers: 1 } })
const LIMIT = 5000

/**
 * An engine as moby's is: a container that it creates holds its name from the start, and is there only later.
 *
 * @param creating how many more requests each container takes; infinite ones are never done
 */
function engine(creating: Record<string, number>, images = 'sha256:1\nsha256:2\n', others: readonly string[] = []) {
  const under = new Map(Object.entries(creating))
  const there = new Set<string>(others)
  const answer = (args: readonly string[]): Result => {
    const name = args.find(arg => arg.startsWith('--name='))?.slice('--name='.length) ?? args.at(-1) ?? ''
    const left = under.get(name)
    if (left !== undefined) {
      under.set(name, left - 1)
      if (left <= 0) {
        under.delete(name)
        there.add(name)
      }
    }
    switch (args[0]) {
      case 'image':
        return ok(images)
      case 'create':
        // An image of the user's may have no command.
        if (images.split('\n').includes(args.at(-1) ?? '')) return no('no command specified')
        if (under.has(name) || there.has(name)) return no(`Conflict. The container name "/${name}" is already in use`)
        there.add(name)
        return ok('id\n')
      case 'container':
        return others.includes(name) && !under.has(name)
          ? ok(JSON.stringify({ app: 'theirs' }))
          : no(`No such container: ${name}`)
      case 'rm':
        // With --force an absent one is no failure.
        return there.delete(name) ? ok(`${name}\n`) : { code: 0, stdout: '', stderr: `No such container: ${name}` }
      default:
        return no(`unknown: ${args.join(' ')}`)
    }
  }
  const docker = dockerThat(async args => answer(args))
  return { docker, there, under }
}

test('nodes that the engine is still creating are waited for and removed', async () => {
  const { docker, there, under } = engine({ 'c-control-plane': 1, 'c-worker': 6 })
  expect(await removeLateNodes(docker, plan, LIMIT)).toBe(2)
  expect([...there, ...under.keys()]).toEqual([])
})

test('where none comes, nothing is left of the asking', async () => {
  const { docker, there } = engine({})
  expect(await removeLateNodes(docker, plan, LIMIT)).toBe(0)
  expect([...there]).toEqual([])
})

test("somebody else's container of such a name stays", async () => {
  const { docker, there } = engine({ 'c-control-plane': 2 }, undefined, ['c-worker'])
  expect(await removeLateNodes(docker, plan, LIMIT)).toBe(1)
  expect([...there]).toEqual(['c-worker'])
})

test('an engine without an image creates no node', async () => {
  const { docker } = engine({}, '')
  expect(await removeLateNodes(docker, plan, LIMIT)).toBe(0)
})

test('an engine that does not come to an end is an error that names the node', async () => {
  const { docker } = engine({ 'c-worker': Number.POSITIVE_INFINITY })
  await expect(removeLateNodes(docker, plan, 0)).rejects.toThrow('still creating the container c-worker')
})

test('an engine that refuses for another reason is an error with its words', async () => {
  const { docker } = engine({})
  const refusing: Docker = { ...docker, try: async () => no('no space left on device') }
  await expect(removeLateNodes(refusing, plan, LIMIT)).rejects.toThrow('no space left on device')
})

test.each([
  [
    ['c-control-plane', 'c-worker'],
    ['c-control-plane', 'c-worker'],
  ],
  [
    ['c-control-plane', 'c-control-plane2'],
    ['c-control-plane', 'c-control-plane2', 'c-external-load-balancer'],
  ],
])('of the nodes %j kind makes the containers %j', (nodes, containers) => {
  expect(plannedContainers({ cluster: 'c', nodes, registry: undefined })).toEqual(containers)
  expect(plannedContainers({ cluster: 'c', nodes, registry: 'c-registry' })).toEqual([...containers, 'c-registry'])
})
