import { describe, expect, test } from 'vitest'
import { removeCluster } from '../../src/cluster/remove.ts'
import { answeringEngine, no, ok } from '../answers.ts'
import { aPlan } from '../builders.ts'

const own = aPlan({ options: { name: 'c' } })
const theirs = aPlan({ options: { name: 'c', network: 'ci' } })

describe('the removal of a network', () => {
  const record = { 'volume inspect': ok(JSON.stringify(theirs.labels)) }
  const busy = no('Error response from daemon: error while removing network: network ci has active endpoints')
  const ofName = `network ls --quiet --no-trunc --filter=name=^ci$ --filter=label=kind-in-dind.cluster`

  test('that the user had before does not happen', async () => {
    const { docker, asked } = answeringEngine(record)
    await removeCluster(docker, theirs)
    expect(asked.filter(line => line.startsWith('network rm'))).toEqual([])
  })

  test('that several clusters share is left to the last of them, whoever made it', async () => {
    const shared = answeringEngine({ ...record, [ofName]: ok('id1\n'), 'network rm': busy })
    expect(await removeCluster(shared.docker, theirs)).toBe('c (0 nodes; the network ci stays, others are on it)')
    expect(shared.asked.at(-1)).toBe(`volume rm --force ${theirs.record} ${theirs.record}-leaving`)

    const last = answeringEngine({ ...record, [ofName]: ok('id1\n') })
    expect(await removeCluster(last.docker, theirs)).toBe('c (0 nodes and its network)')
    expect(last.asked).toContain('network rm id1')
  })

  test("that is the cluster's own first takes others from it: a service of the job that still runs", async () => {
    let rid = false
    const { docker, asked } = answeringEngine({
      'volume inspect': ok(JSON.stringify(own.labels)),
      'network ls': ok('id1\n'),
      'network inspect': ok('service\n'),
      get 'network rm'() {
        return rid ? ok() : busy
      },
      get 'network disconnect'() {
        rid = true
        return ok()
      },
    })
    expect(await removeCluster(docker, own)).toBe('c (0 nodes and its network)')
    expect(asked).toContain('network disconnect --force id1 service')
  })

  test("that is the cluster's own and stays is an error: the record stays too, so that it is found again", async () => {
    const { docker, asked } = answeringEngine({
      'volume inspect': ok(JSON.stringify(own.labels)),
      'network ls': ok('id1\n'),
      'network rm': busy,
    })
    await expect(removeCluster(docker, own, { limit: 10 })).rejects.toThrow(/active endpoints/)
    expect(asked.some(line => line.startsWith('volume rm'))).toBe(false)
  })
})

test('nodes that are known by their ids are removed once, before anything is looked up', async () => {
  const { docker, asked } = answeringEngine({
    'volume inspect': ok(JSON.stringify(own.labels)),
    'ps --all --quiet --no-trunc --filter=label=io.x-k8s.kind.cluster=c': ok('node\n'),
    'rm --force --volumes node': ok('node\n'),
  })
  expect(await removeCluster(docker, own, { seen: ['node'] })).toBe('c (1 node)')
  expect(asked[0]).toBe('rm --force --volumes node')
  expect(asked.filter(line => line.startsWith('rm '))).toHaveLength(1)
})

describe('the removal of a cluster whose record somebody has pruned', () => {
  const pruned = { 'volume inspect': no('Error: No such volume: kind-in-dind-c') }
  const ofKind = 'ps --all --quiet --no-trunc --filter=label=io.x-k8s.kind.cluster=c'
  const ofUse = (plan: typeof own): string => `network ls --quiet --filter=label=kind-in-dind.use=${plan.use}`
  const byLabel = 'network ls --quiet --no-trunc --filter=label=kind-in-dind.cluster=c'

  test('takes all by the label of its network', async () => {
    const { docker, asked } = answeringEngine({
      ...pruned,
      [ofKind]: ok('node\n'),
      [ofUse(own)]: ok('id1\n'),
      [byLabel]: ok('id1\n'),
    })
    expect(await removeCluster(docker, own, { seen: [] })).toBe('c (1 node and its network)')
    expect(asked).toContain('rm --force --volumes node')
    expect(asked).toContain('network rm id1')
  })

  test("on the user's network takes the nodes that it has made, known by their ids", async () => {
    const { docker, asked } = answeringEngine({ ...pruned, [ofKind]: ok('node\nnode2\n') })
    expect(await removeCluster(docker, theirs, { seen: ['node', 'node2'] })).toBe('c (2 nodes)')
    expect(asked).toContain('rm --force --volumes node node2')
  })

  test("is none of a cluster of that name that is somebody else's", async () => {
    const { docker, asked } = answeringEngine({ ...pruned, [ofKind]: ok('another\n') })
    expect(await removeCluster(docker, own, { seen: ['node'] })).toBeUndefined()
    expect(asked.filter(line => / rm |^rm /.test(line))).toEqual(['rm --force --volumes node'])
  })

  test('is none where the record is of another use', async () => {
    const record = { 'volume inspect': ok(JSON.stringify({ ...own.labels, 'kind-in-dind.use': 'another' })) }
    const { docker } = answeringEngine({ ...record, [ofKind]: ok('node\n'), [ofUse(own)]: ok('id1\n') })
    expect(await removeCluster(docker, own, { seen: ['node'] })).toBeUndefined()
  })
})

test('a network that was pruned before it had a node, and that kind made anew without labels, goes by its name', async () => {
  const { docker, asked } = answeringEngine({
    'volume inspect': ok(JSON.stringify(own.labels)),
    [`network ls --quiet --no-trunc --filter=name=^${own.network}$`]: ok('id2\n'),
  })
  expect(await removeCluster(docker, own)).toBe('c (0 nodes and its network)')
  expect(asked).toContain('network rm id2')
})

describe('the removal of a registry', () => {
  const plan = aPlan({ options: { name: 'c', registry: { port: undefined } } })
  const ofKind = 'ps --all --quiet --no-trunc --filter=label=io.x-k8s.kind.cluster=c'
  const ofOurs = 'ps --all --quiet --no-trunc --filter=label=kind-in-dind.cluster=c'

  test('is that of its container with its volume, beside the nodes', async () => {
    const { docker, asked } = answeringEngine({
      'volume inspect': ok(JSON.stringify(plan.labels)),
      [ofKind]: ok('node\n'),
      [ofOurs]: ok('registry\n'),
      'network ls': ok('id1\n'),
    })
    expect(await removeCluster(docker, plan)).toBe('c (1 node, its registry and its network)')
    expect(asked).toContain('rm --force --volumes node registry')
  })

  test('waits for one that the engine is still creating', async () => {
    const { docker, asked } = answeringEngine({
      'volume inspect': ok(JSON.stringify(plan.labels)),
      [ofKind]: ok('node\n'),
      'image ls': ok('sha256:1\n'),
    })
    await removeCluster(docker, plan)
    expect(asked.filter(line => line.startsWith('create'))).toContainEqual(expect.stringContaining('--name=c-registry'))
  })
})
