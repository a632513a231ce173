import { describe, expect, test } from 'vitest'
import { checkName, ipv6Subnet, limitNodes, makeNetwork, makeNodes, milestone } from '../../src/cluster/create.ts'
import { limitContainers, probeEngine } from '../../src/engine/containers.ts'
import { createNetwork } from '../../src/engine/networks.ts'
import { Problem } from '../../src/lib/problem.ts'
import { CommandFailed, type Runner } from '../../src/lib/run.ts'
import { createTimeline } from '../../src/lib/timeline.ts'
import { answeringEngine, no, ok } from '../answers.ts'
import { aPlan } from '../builders.ts'

const own = aPlan({ options: { name: 'c' } })
const theirs = aPlan({ options: { name: 'c', network: 'ci' } })

describe("the cluster's name", () => {
  const free = { 'volume inspect': no('no such volume') }

  test('may be had where nobody has it, nor a name of its containers', async () => {
    await checkName(answeringEngine({ ...free, 'ps --all --format={{.Names}}': ok('c\nc-web\n') }).docker, own)
  })

  test.each([
    [{ 'volume inspect': ok('{}') }, 'the engine has a cluster c already'],
    [{ ...free, 'ps --all --quiet': ok('123\n') }, 'the engine has a cluster c already (not one of kind-in-dind)'],
    [
      { ...free, 'ps --all --format={{.Names}}': ok('c-control-plane\nother\n') },
      'the engine has the container c-control-plane already, which is not of a cluster; choose another name than c, or',
    ],
  ])('is refused where %j', async (answers, why) => {
    await expect(checkName(answeringEngine(answers).docker, own)).rejects.toThrow(`name: ${why}`)
  })
})

describe("the cluster's network", () => {
  test.each<[string, unknown, string, string[], string[]]>([
    ['IPv4 alone, unless the config asks for more', undefined, '', [], ['--ipv6', '--subnet']],
    ['IPv4 alone, as the config says', 'ipv4', '', [], ['--ipv6', '--subnet']],
    ['IPv6', 'ipv6', '', [`--ipv6 --subnet=${ipv6Subnet('c')}`], ['mtu']],
    ['both', 'dual', '', [`--ipv6 --subnet=${ipv6Subnet('c')}`], ['mtu']],
    ["the engine's MTU", undefined, '1450\n', ['--opt=com.docker.network.driver.mtu=1450'], []],
    ['an MTU that the engine does not tell', undefined, '<no value>\n', [], ['mtu']],
  ])('%s', async (_, family, mtu, present, absent) => {
    const { docker, made } = answeringEngine({ 'network inspect bridge': ok(mtu) })
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
    const { docker, made } = answeringEngine({ 'network inspect --format={{.Id}} ci': ok('1234') })
    await makeNetwork(docker, theirs, undefined)
    expect(made()).toEqual([])
  })

  test('that the user names and nobody has is made; another job may have been first', async () => {
    for (const created of [ok(), no('Error response from daemon: network with name ci already exists')]) {
      const { docker, made } = answeringEngine({
        'network inspect --format={{.Id}} ci': no('not found'),
        'network create': created,
      })
      await makeNetwork(docker, theirs, undefined)
      expect(made()).toEqual([expect.stringMatching(/ ci$/)])
    }
  })

  test('that cannot be made is a problem that says why', async () => {
    const { docker } = answeringEngine({
      'network create': no('all predefined address pools have been fully subnetted'),
    })
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

describe('limits', () => {
  test.each<[{ cpus?: number; memory?: number }, string[]]>([
    [{ cpus: 1.5 }, ['--cpus=1.5']],
    // Without the second one Docker lets a container swap as much again.
    [{ memory: 2 ** 31 }, ['--memory=2147483648', '--memory-swap=2147483648']],
    [{ cpus: 2, memory: 2 ** 30 }, ['--cpus=2', '--memory=1073741824', '--memory-swap=1073741824']],
  ])('%j are set on every node by one command', async (limits, flags) => {
    expect(limitContainers(['a', 'b'], limits)).toEqual(['update', ...flags, 'a', 'b'])
    const { docker, asked } = answeringEngine({})
    await limitNodes(docker, aPlan({ options: { name: 'c', workers: 1 } }), limits)
    expect(asked).toEqual([['update', ...flags, 'c-control-plane', 'c-worker'].join(' ')])
  })

  test('that nobody asked for are none', async () => {
    const { docker, asked } = answeringEngine({})
    await limitNodes(docker, own, {})
    expect(asked).toEqual([])
  })
})

test('a probe runs as a node is run, also where the engine remaps users', () => {
  const wish = { labels: {}, image: 'node', listenAddress: '::1', mounts: ['/a"b'], registryPort: undefined }
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
  const made = makeNodes({ run } as Runner, answeringEngine({}).docker, 'kind', aPlan(), {}, log)
  await expect(made).rejects.toThrow('kind could not create the cluster: kubeadm gave up')
  expect(timeline.spans()).toEqual([
    { name: 'Preparing nodes', start: 0, end: 10, failed: false },
    { name: 'Starting control-plane', start: 20, end: 30, failed: true },
  ])
})
