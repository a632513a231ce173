import { describe, expect, test } from 'vitest'
import { ipv6Subnet, limitNodes, makeNetwork, makeNodes, milestone } from '../../src/cluster/create.ts'
import { removeCluster } from '../../src/cluster/remove.ts'
import { limitContainers, probeEngine } from '../../src/engine/containers.ts'
import type { Docker } from '../../src/engine/docker.ts'
import { createNetwork } from '../../src/engine/networks.ts'
import { Problem } from '../../src/lib/problem.ts'
import { CommandFailed, type Result, type Runner } from '../../src/lib/run.ts'
import { createTimeline } from '../../src/lib/timeline.ts'
import { aPlan } from '../builders.ts'

const ok = (stdout = ''): Result => ({ code: 0, stdout, stderr: '' })
const no = (stderr: string): Result => ({ code: 1, stdout: '', stderr })

/** An engine that answers by the first words of a command, and notes every command. */
function engine(answers: Readonly<Record<string, Result>>) {
  const asked: string[] = []
  const answer = async (args: readonly string[]): Promise<Result> => {
    asked.push(args.join(' '))
    const found = Object.keys(answers).find(start => args.join(' ').startsWith(start))
    return found === undefined ? ok() : (answers[found] as Result)
  }
  const docker: Docker = {
    try: answer,
    run: async args => {
      const result = await answer(args)
      if (result.code !== 0) throw new CommandFailed(['docker', ...args], result)
      return result
    },
    start: () => {
      throw new Error('nothing is piped')
    },
  }
  return { docker, asked, made: () => asked.filter(line => line.startsWith('network create')) }
}

const own = aPlan({ options: { name: 'c' } })
const theirs = aPlan({ options: { name: 'c', network: 'ci' } })

describe("the cluster's network", () => {
  test.each<[string, unknown, string, string[], string[]]>([
    ['IPv4 alone, unless the config asks for more', undefined, '', [], ['--ipv6', '--subnet']],
    ['IPv4 alone, as the config says', 'ipv4', '', [], ['--ipv6', '--subnet']],
    ['IPv6', 'ipv6', '', [`--ipv6 --subnet=${ipv6Subnet('c')}`], ['mtu']],
    ['both', 'dual', '', [`--ipv6 --subnet=${ipv6Subnet('c')}`], ['mtu']],
    ["the engine's MTU", undefined, '1450\n', ['--opt=com.docker.network.driver.mtu=1450'], []],
    ['an MTU that the engine does not tell', undefined, '<no value>\n', [], ['mtu']],
  ])('%s', async (_, family, mtu, present, absent) => {
    const { docker, made } = engine({ 'network inspect bridge': ok(mtu) })
    await makeNetwork(docker, own, family)
    expect(made()).toHaveLength(1)
    for (const part of present) expect(made()[0]).toContain(part)
    for (const part of absent) expect(made()[0]).not.toContain(part)
    expect(made()[0]).toMatch(/ --label kind-in-dind\.cluster=c .* kind-in-dind-c$/)
  })

  test('is made whole by one command', () => {
    expect(createNetwork(own, { mtu: '1400', ipv6: 'fd00::/64' })).toEqual([
      ...['network', 'create', '--driver=bridge', '--opt=com.docker.network.bridge.enable_ip_masquerade=true'],
      ...['--opt=com.docker.network.driver.mtu=1400', '--ipv6', '--subnet=fd00::/64'],
      ...Object.entries(own.labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]),
      'kind-in-dind-c',
    ])
  })

  test('that the user names and the engine has is taken as it is', async () => {
    const { docker, made } = engine({ 'network inspect --format={{.Id}} ci': ok('1234') })
    await makeNetwork(docker, theirs, undefined)
    expect(made()).toEqual([])
  })

  test('that the user names and nobody has is made; another job may have been first', async () => {
    for (const created of [ok(), no('Error response from daemon: network with name ci already exists')]) {
      const { docker, made } = engine({
        'network inspect --format={{.Id}} ci': no('not found'),
        'network create': created,
      })
      await makeNetwork(docker, theirs, undefined)
      expect(made()).toEqual([expect.stringMatching(/ ci$/)])
    }
  })

  test('that cannot be made is a problem that says why', async () => {
    const { docker } = engine({ 'network create': no('all predefined address pools have been fully subnetted') })
    await expect(makeNetwork(docker, own, undefined)).rejects.toThrow(
      new Problem(
        'network: the engine cannot make the network kind-in-dind-c: all predefined address pools have been fully subnetted',
      ),
    )
  })
})

describe('an IPv6 subnet', () => {
  test('is a unique local one of 64 bits (RFC 4193), always the same for a name and another for another', () => {
    expect(ipv6Subnet('shop-1')).toMatch(/^fd[0-9a-f]{2}(:[0-9a-f]{1,4}){3}::\/64$/)
    expect(ipv6Subnet('shop-1')).toBe(ipv6Subnet('shop-1'))
    expect(ipv6Subnet('shop-1')).not.toBe(ipv6Subnet('shop-2'))
  })
})

describe('the removal of a network', () => {
  const record = { 'volume inspect': ok(JSON.stringify(theirs.labels)) }
  const busy = no('Error response from daemon: error while removing network: network ci has active endpoints')
  const ofName = `network ls --quiet --no-trunc --filter=name=^ci$ --filter=label=kind-in-dind.cluster`

  test('that the user had before does not happen', async () => {
    const { docker, asked } = engine(record)
    await removeCluster(docker, theirs)
    expect(asked.filter(line => line.startsWith('network rm'))).toEqual([])
  })

  test('that several clusters share is left to the last of them, whoever made it', async () => {
    const shared = engine({ ...record, [ofName]: ok('id1\n'), 'network rm': busy })
    expect(await removeCluster(shared.docker, theirs)).toBe('c (0 nodes; the network ci stays, others are on it)')
    expect(shared.asked.at(-1)).toBe(`volume rm --force ${theirs.record} ${theirs.record}-leaving`)

    const last = engine({ ...record, [ofName]: ok('id1\n') })
    expect(await removeCluster(last.docker, theirs)).toBe('c (0 nodes and its network)')
    expect(last.asked).toContain('network rm id1')
  })

  test("that is the cluster's own first takes others from it: a service of the job that still runs", async () => {
    let rid = false
    const { docker, asked } = engine({
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
    const { docker, asked } = engine({
      'volume inspect': ok(JSON.stringify(own.labels)),
      'network ls': ok('id1\n'),
      'network rm': busy,
    })
    await expect(removeCluster(docker, own, { limit: 10 })).rejects.toThrow(/active endpoints/)
    expect(asked.some(line => line.startsWith('volume rm'))).toBe(false)
  })
})

test('nodes that are known by their ids are removed once, before anything is looked up', async () => {
  const { docker, asked } = engine({
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
    const { docker, asked } = engine({
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
    const { docker, asked } = engine({ ...pruned, [ofKind]: ok('node\nnode2\n') })
    expect(await removeCluster(docker, theirs, { seen: ['node', 'node2'] })).toBe('c (2 nodes)')
    expect(asked).toContain('rm --force --volumes node node2')
  })

  test("is none of a cluster of that name that is somebody else's", async () => {
    const { docker, asked } = engine({ ...pruned, [ofKind]: ok('another\n') })
    expect(await removeCluster(docker, own, { seen: ['node'] })).toBeUndefined()
    expect(asked.filter(line => / rm |^rm /.test(line))).toEqual(['rm --force --volumes node'])
  })

  test('is none where the record is of another use', async () => {
    const record = { 'volume inspect': ok(JSON.stringify({ ...own.labels, 'kind-in-dind.use': 'another' })) }
    const { docker } = engine({ ...record, [ofKind]: ok('node\n'), [ofUse(own)]: ok('id1\n') })
    expect(await removeCluster(docker, own, { seen: ['node'] })).toBeUndefined()
  })
})

test('a network that was pruned before it had a node, and that kind made anew without labels, goes by its name', async () => {
  const { docker, asked } = engine({
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
    const { docker, asked } = engine({
      'volume inspect': ok(JSON.stringify(plan.labels)),
      [ofKind]: ok('node\n'),
      [ofOurs]: ok('registry\n'),
      'network ls': ok('id1\n'),
    })
    expect(await removeCluster(docker, plan)).toBe('c (1 node, its registry and its network)')
    expect(asked).toContain('rm --force --volumes node registry')
  })

  test('waits for one that the engine is still creating', async () => {
    const { docker, asked } = engine({
      'volume inspect': ok(JSON.stringify(plan.labels)),
      [ofKind]: ok('node\n'),
      'image ls': ok('sha256:1\n'),
    })
    await removeCluster(docker, plan)
    expect(asked.filter(line => line.startsWith('create'))).toContainEqual(expect.stringContaining('--name=c-registry'))
  })
})

describe('limits', () => {
  test.each<[{ cpus?: number; memory?: number }, string[]]>([
    [{ cpus: 1.5 }, ['--cpus=1.5']],
    // Without the second one Docker lets a container swap as much again.
    [{ memory: 2 ** 31 }, ['--memory=2147483648', '--memory-swap=2147483648']],
    [{ cpus: 2, memory: 2 ** 30 }, ['--cpus=2', '--memory=1073741824', '--memory-swap=1073741824']],
  ])('%j are set on every node by one command', async (limits, flags) => {
    expect(limitContainers(['a', 'b'], limits)).toEqual(['update', ...flags, 'a', 'b'])
    const { docker, asked } = engine({})
    await limitNodes(docker, aPlan({ options: { name: 'c', workers: 1 } }), limits)
    expect(asked).toEqual([['update', ...flags, 'c-control-plane', 'c-worker'].join(' ')])
  })

  test('that nobody asked for are none', async () => {
    const { docker, asked } = engine({})
    await limitNodes(docker, own, {})
    expect(asked).toEqual([])
  })
})

test('a probe runs as a node is run, also where the engine remaps users', () => {
  const wish = { cluster: 'c', image: 'node', listenAddress: '::1', mounts: ['/a"b'], registryPort: undefined }
  const args = probeEngine({ ...wish, ports: [{ node: 53, outer: 5353, address: undefined, protocol: 'UDP' }] })
  expect(args).toEqual(expect.arrayContaining(['--privileged', '--userns=host', '--publish=[::1]:5353:53/udp']))
  expect(args).toContain('--mount=type=bind,"source=/a""b",target=/mnt/0,readonly')
})

test.each([
  [' ✓ Starting control-plane 🕹️', { sign: '✓', name: 'Starting control-plane' }],
  [' • Preparing nodes 📦 📦   ...', { sign: '•', name: 'Preparing nodes' }],
  [' ✗ Preparing nodes 📦 📦 ', { sign: '✗', name: 'Preparing nodes' }],
  ['Creating cluster "shop" ...', undefined],
])('kind says with %j: %j', (line, said) => {
  expect(milestone(line)).toEqual(said)
})

test('what kind is at is a stage from its beginning to its end, also where it fails', async () => {
  let now = 0
  const timeline = createTimeline(() => now)
  const lines = [' • Preparing nodes 📦  ...', ' ✓ Preparing nodes 📦 ', ' • Starting control-plane 🕹️  ...']
  const run: Runner['run'] = async (argv, options) => {
    for (const line of lines) {
      options?.onLine?.(line)
      now += 10
    }
    throw new CommandFailed(argv, no('kubeadm gave up'))
  }
  const log = { info: () => {}, debug: () => {}, timeline }
  const made = makeNodes({ run } as Runner, engine({}).docker, 'kind', aPlan(), {}, log)
  await expect(made).rejects.toThrow('kind could not create the cluster: kubeadm gave up')
  expect(timeline.spans()).toEqual([
    { name: 'Preparing nodes', start: 0, end: 10, failed: false },
    { name: 'Starting control-plane', start: 20, end: 30, failed: true },
  ])
})
