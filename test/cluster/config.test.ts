import { describe, expect, test } from 'vitest'
import {
  allowsCgroupV1,
  chosenImage,
  fixedPorts,
  kindConfig,
  mountedPaths,
  needsCertsFolder,
  nodeImages,
  withImages,
} from '../../src/cluster/config.ts'
import type { KindConfig } from '../../src/kind-config.ts'
import type { Options } from '../../src/options.ts'
import { anOptions } from '../builders.ts'

const image = 'kindest/node:v1.34.0'
const place = {
  listenAddress: '172.18.0.2',
  names: ['docker', '172.18.0.2'],
  remote: true,
  certsFolder: false,
  dnsSearch: true,
  nodeImage: image,
  kubelet: undefined,
}
const merged = (options: Partial<Options>, where: Partial<typeof place> = {}): KindConfig =>
  kindConfig(anOptions(options), { ...place, ...where })
const cluster: KindConfig = { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4' }

describe('without a config of the user', () => {
  test('the API server is published where the step reaches it, at a port that the engine picks', () => {
    expect(merged({}).networking).toMatchObject({ apiServerAddress: '172.18.0.2', apiServerPort: -1 })
  })

  test("pods get no search domains of the engine's machine, where kind can keep them from there", () => {
    expect(merged({}).networking?.['dnsSearch']).toEqual([])
    expect(merged({}, { dnsSearch: false }).networking).not.toHaveProperty('dnsSearch')
  })

  test('workers come beside one control plane', () => {
    expect(merged({ workers: 2 }).nodes?.map(({ role }) => role)).toEqual(['control-plane', 'worker', 'worker'])
  })

  test.each(['v1beta3', 'v1beta4'])(
    "every name is added to the certificate, beside kind's own, in kubeadm's %s",
    version => {
      const patches = merged({})['kubeadmConfigPatchesJSON6902'] as { version: string; patch: string }[]
      const added = JSON.parse(patches.find(patch => patch.version === version)?.patch ?? '') as object[]
      expect(added).toEqual(
        ['localhost', '127.0.0.1', '172.18.0.2', 'docker'].map(value => ({
          op: 'add',
          path: '/apiServer/certSANs/-',
          value,
        })),
      )
    },
  )
})

describe('ports', () => {
  test('are published on the first control plane; the engine picks what is not said', () => {
    const ports: Options['ports'] = [
      { node: 30080, outer: undefined, address: undefined, protocol: 'TCP' },
      { node: 30053, outer: 53, address: '0.0.0.0', protocol: 'UDP' },
    ]
    expect(merged({ ports, workers: 1 }).nodes).toEqual([
      {
        role: 'control-plane',
        image,
        extraPortMappings: [
          { containerPort: 30080, hostPort: -1, listenAddress: '172.18.0.2', protocol: 'TCP' },
          { containerPort: 30053, hostPort: 53, listenAddress: '0.0.0.0', protocol: 'UDP' },
        ],
      },
      { role: 'worker', image },
    ])
  })

  test('that the config maps already stay as they are there', () => {
    const mapping = { containerPort: 30080, hostPort: 8080 }
    const config = { ...cluster, nodes: [{ role: 'control-plane', extraPortMappings: [mapping] }] }
    const ports: Options['ports'] = [{ node: 30080, outer: undefined, address: undefined, protocol: 'TCP' }]
    expect(merged({ config, ports }).nodes?.[0]?.extraPortMappings).toEqual([mapping])
  })

  test('of another protocol come beside it, and another outer port for the same is refused', () => {
    const mapping = { containerPort: 30080, hostPort: 8080 }
    const config = { ...cluster, nodes: [{ role: 'control-plane', extraPortMappings: [mapping] }] }
    const port = { node: 30080, outer: 9090, address: undefined }
    expect(merged({ config, ports: [{ ...port, protocol: 'UDP' }] }).nodes?.[0]?.extraPortMappings).toHaveLength(2)
    expect(() => merged({ config, ports: [{ ...port, protocol: 'TCP' }] })).toThrow(
      'ports: the config publishes 30080 at 8080 and not at 9090; leave one of the two out',
    )
  })
})

describe("the user's config", () => {
  test('stands: roles, labels, feature gates, networking, patches', () => {
    const config: KindConfig = {
      ...cluster,
      featureGates: { Some: true },
      networking: {
        podSubnet: '10.99.0.0/16',
        apiServerAddress: '0.0.0.0',
        ipFamily: 'dual',
        dnsSearch: ['a.example'],
      },
      nodes: [{ role: 'control-plane', labels: { tier: 'one' } }, { role: 'worker' }],
      kubeadmConfigPatches: ['kind: ClusterConfiguration\napiServer: {extraArgs: {v: "4"}}\n'],
    }
    expect(merged({ config })).toMatchObject({
      ...config,
      networking: { ...config.networking, apiServerPort: -1 },
    })
  })

  test('keeps its own JSON patches before ours', () => {
    const own = { group: 'kubeadm.k8s.io', version: 'v1beta4', kind: 'InitConfiguration', patch: '[]' }
    const patches = merged({ config: { ...cluster, kubeadmConfigPatchesJSON6902: [own] } })[
      'kubeadmConfigPatchesJSON6902'
    ]
    expect((patches as unknown[])[0]).toEqual(own)
  })

  test('with several control planes is refused on a remote engine, with the reason', () => {
    const config = { ...cluster, nodes: [{ role: 'control-plane' }, { role: 'control-plane' }] }
    expect(() => merged({ config })).toThrow(/^config: 2 control planes need an engine on this machine/)
    expect(merged({ config }, { remote: false }).networking?.['apiServerPort']).toBe(0)
  })

  test.each([
    ['kind: KubeletConfiguration\nfailCgroupV1: false\n', true],
    ['kind: KubeletConfiguration\nfailCgroupV1: true\n', false],
    ['kind: KubeletConfiguration\n', false],
  ])('says with %j that cgroup v1 is allowed: %s', (patch, allowed) => {
    expect(allowsCgroupV1({ ...cluster, kubeadmConfigPatches: [patch] })).toBe(allowed)
  })
})

test('the paths that nodes mount are found, a relative one from the current folder', () => {
  const mount = (hostPath: string) => ({ hostPath, containerPath: '/data' })
  const nodes = [{ extraMounts: [mount('/one'), mount('two')] }, { role: 'worker', extraMounts: [mount('/one')] }]
  expect(mountedPaths({ ...cluster, nodes })).toEqual(['/one', `${process.cwd()}/two`])
})

describe('node images', () => {
  const config = { ...cluster, nodes: [{ role: 'control-plane', image: 'own:1' }, { role: 'worker' }] }

  test('of the config stand, and the first of them is for the nodes that name none', () => {
    const chosen = chosenImage(anOptions({ config }))
    expect(chosen).toEqual({ kind: 'image', reference: 'own:1' })
    expect(nodeImages({ config }, 'own:1')).toEqual(['own:1'])
  })

  test('of the options are for the nodes that name none', () => {
    const nodeImage = { kind: 'image', reference: 'option:1' } as const
    expect(chosenImage(anOptions({ config, nodeImage }))).toEqual(nodeImage)
    const merging = kindConfig(anOptions({ config }), { ...place, nodeImage: 'option:1' })
    expect(merging.nodes?.map(node => node.image)).toEqual(['own:1', 'option:1'])
    expect(nodeImages({ config }, 'option:1')).toEqual(['option:1', 'own:1'])
  })
})

test('the ports that the config fixes are known before creation', () => {
  const extraPortMappings = [
    { containerPort: 80, hostPort: 8080 },
    { containerPort: 53, hostPort: 5353, listenAddress: '127.0.0.1', protocol: 'UDP' },
    { containerPort: 443 },
    { containerPort: 444, hostPort: -1 },
  ]
  const config = { ...cluster, nodes: [{ extraPortMappings }] }
  const port = { outer: 8080, address: undefined, protocol: 'TCP' } as const
  const other = { ...port, node: 30080, outer: 9090 }
  expect(fixedPorts({ config, ports: [{ ...port, node: 80 }, other] })).toEqual([
    other,
    { node: 80, outer: 8080, address: '0.0.0.0', protocol: 'TCP' },
    { node: 53, outer: 5353, address: '127.0.0.1', protocol: 'UDP' },
  ])
})

test('nodes get their images by the names that the engine has them by', () => {
  const config = { ...cluster, nodes: [{ image: 'a:1' }, { role: 'worker', image: 'b:1' }, {}] }
  expect(withImages(config, new Map([['b:1', 'mirror.example/b@sha256:1']]))).toEqual({
    ...cluster,
    nodes: [{ image: 'a:1' }, { role: 'worker', image: 'mirror.example/b@sha256:1' }, {}],
  })
})

describe('the folder of registries', () => {
  const patch = '[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "/etc/containerd/certs.d"\n'

  test("is told to containerd beside the user's patches, where it has to be", () => {
    const config = { ...cluster, containerdConfigPatches: ['[debug]\n  level = "debug"'] }
    expect(merged({ config }, { certsFolder: true }).containerdConfigPatches).toEqual([
      ...config.containerdConfigPatches,
      patch,
    ])
    expect(merged({}, { certsFolder: true }).containerdConfigPatches).toEqual([patch])
    expect(merged({ config }).containerdConfigPatches).toEqual(config.containerdConfigPatches)
  })

  test.each([
    ['v1.37.0', false],
    ['v1.33.1', false],
    ['v1.32.2', true],
    ['v1.9.0', true],
    [undefined, true],
  ])('is known to nodes of Kubernetes %s: asked for %s', (version, asked) => {
    expect(needsCertsFolder(version)).toBe(asked)
  })
})

test('names that no certificate can hold are left out, and capitals made small', () => {
  const names = ['my_dind', 'Docker', 'fe80::1%eth0', 'fd00::2', 'engine.ci.internal']
  const patches = kindConfig(anOptions(), { ...place, names })['kubeadmConfigPatchesJSON6902'] as { patch: string }[]
  const added = (JSON.parse(patches[0]?.patch ?? '') as { value: string }[]).map(({ value }) => value)
  expect(added).toEqual(['localhost', '127.0.0.1', '172.18.0.2', 'docker', 'fd00::2', 'engine.ci.internal'])
})
