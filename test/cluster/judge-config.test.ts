import { describe, expect, test } from 'vitest'
import { kindConfig } from '../../src/cluster/config.ts'
import { judgeConfig, kubeadmVersion } from '../../src/cluster/judge-config.ts'
import type { KindConfig } from '../../src/kind-config.ts'
import { anOptions, parseGiven } from '../builders.ts'

const cluster: KindConfig = { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4' }
const here = { kubernetesVersion: 'v1.34.4', loopback: false }
const judged = (config: object, facts: Partial<typeof here> = {}) =>
  judgeConfig(anOptions({ config: { ...cluster, ...config } }), { ...here, ...facts })

/**
 * What kind 0.33 writes for each Kubernetes: the templates and the choice between them in `Config`, in its
 * pkg/cluster/internal/kubeadm/config.go. 1.23 to 1.35 get ConfigTemplateBetaV3, later ones ConfigTemplateBetaV4.
 */
const KUBEADM: readonly (readonly [kubernetes: string, kubeadm: string])[] = [
  ['v1.31.0', 'v1beta3'],
  ['v1.32.0', 'v1beta3'],
  ['v1.33.1', 'v1beta3'],
  ['v1.34.4', 'v1beta3'],
  ['v1.35.0', 'v1beta3'],
  ['v1.36.1', 'v1beta4'],
  ['v1.37.0', 'v1beta4'],
]

describe.each(KUBEADM)('Kubernetes %s, for which kind writes %s', (kubernetesVersion, version) => {
  test('is told right', () => {
    expect(kubeadmVersion(kubernetesVersion)).toBe(version)
  })

  test('our names are in the certificate beside those of kind and of the user', () => {
    const config = {
      ...cluster,
      kubeadmConfigPatchesJSON6902: [
        {
          group: 'kubeadm.k8s.io',
          version,
          kind: 'ClusterConfiguration',
          patch: '[{"op":"add","path":"/apiServer/certSANs/-","value":"api.example"}]',
        },
      ],
    }
    const place = {
      listenAddress: '172.18.0.2',
      names: ['docker', '172.18.0.2'],
      remote: true,
      certsFolder: false,
      kubelet: undefined,
      nodeImage: 'node:1',
      dnsSearch: true,
    }
    expect(certificateNames(kindConfig(anOptions({ config }), place), version)).toEqual([
      ...['localhost', '172.18.0.2'],
      'api.example',
      ...['localhost', '127.0.0.1', '172.18.0.2', 'docker'],
    ])
  })

  test('every patch of ours that is not for that version alone names none', () => {
    const place = {
      listenAddress: '127.0.0.1',
      names: [],
      remote: false,
      certsFolder: false,
      kubelet: '{"kind":"KubeletConfiguration"}',
      nodeImage: 'node:1',
      dnsSearch: true,
    }
    const { kubeadmConfigPatches = [] } = kindConfig(anOptions({}), place)
    for (const patch of kubeadmConfigPatches) expect(patch).not.toMatch(/apiVersion/)
  })

  test('a patch for another version is a warning that names both; one for this version, or for none, is not', () => {
    const other = version === 'v1beta3' ? 'v1beta4' : 'v1beta3'
    const patch = (named: string): string => `apiVersion: kubeadm.k8s.io/${named}\nkind: ClusterConfiguration\n`
    const { warnings } = judged({ kubeadmConfigPatches: [patch(other), patch(version)] }, { kubernetesVersion })
    expect(warnings).toEqual([
      `config: a kubeadm patch for ${other} is passed over with Kubernetes ${kubernetesVersion}, for which kind writes ${version}; leave out its apiVersion and it always applies`,
    ])
    const fine = { kubeadmConfigPatches: [patch(version), 'kind: ClusterConfiguration\napiServer: {}\n'] }
    expect(judged(fine, { kubernetesVersion })).toEqual({ stops: [], warnings: [] })
  })
})

/** As kind does it: a patch matches a document by its kind, group and version; its own names come first. */
function certificateNames(config: KindConfig, version: string): string[] {
  const names = ['localhost', String(config.networking?.['apiServerAddress'])]
  const patches = config['kubeadmConfigPatchesJSON6902'] as readonly Record<string, string>[]
  for (const { group, version: named, kind, patch = '' } of patches) {
    if (`${group}/${named} ${kind}` !== `kubeadm.k8s.io/${version} ClusterConfiguration`) continue
    for (const { op, path, value } of JSON.parse(patch) as Record<string, string>[]) {
      expect([op, path]).toEqual(['add', '/apiServer/certSANs/-'])
      names.push(value ?? '')
    }
  }
  return names
}

describe('a versioned kubeadm patch', () => {
  const other = 'apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration'
  test.each<[string, object, number]>([
    ['of a node', { nodes: [{ kubeadmConfigPatches: [other] }] }, 1],
    ['that is a JSON patch', { kubeadmConfigPatchesJSON6902: [{ group: 'kubeadm.k8s.io', version: 'v1beta2' }] }, 1],
    ['written as JSON', { kubeadmConfigPatches: ['{"apiVersion": "kubeadm.k8s.io/v1beta4"}'] }, 1],
    ['in the second of two documents', { kubeadmConfigPatches: [`kind: InitConfiguration\n---\n${other}`] }, 1],
    ['twice', { kubeadmConfigPatches: [other, other] }, 1],
    ['for each of two versions', { kubeadmConfigPatches: [other, other.replace('v1beta4', 'v1beta2')] }, 2],
    ['in a comment', { kubeadmConfigPatches: [`# ${other.replace('\n', '\n# ')}\nkind: ClusterConfiguration`] }, 0],
    ['of the kubelet', { kubeadmConfigPatches: ['apiVersion: kubelet.config.k8s.io/v1beta1'] }, 0],
    [
      'for another group',
      { kubeadmConfigPatchesJSON6902: [{ group: 'kubelet.config.k8s.io', version: 'v1beta1' }] },
      0,
    ],
  ])('%s', (_, config, count) => {
    expect(judged(config).warnings).toHaveLength(count)
  })

  test('is not judged where nothing tells the Kubernetes version', () => {
    expect(
      judgeConfig(anOptions({ config: { ...cluster, kubeadmConfigPatches: [other] } }), {
        loopback: false,
        kubernetesVersion: undefined,
      }).warnings,
    ).toEqual([])
  })
})

describe('a containerd patch', () => {
  test.each([
    '[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\n  endpoint = ["http://mirror:5000"]',
    '[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example".auth]\n  username = "u"',
    '[plugins."io.containerd.grpc.v1.cri".registry]\n  mirrors = {}',
    "[plugins.'io.containerd.grpc.v1.cri'.'registry'.'mirrors']",
    'plugins."io.containerd.grpc.v1.cri".registry.mirrors."a".endpoint = ["http://b"]',
  ])('with the registries of old is refused, with what to write instead: %s', patch => {
    const { stops } = judged({ containerdConfigPatches: ['version = 2', patch] })
    expect(stops).toEqual([expect.stringMatching(/registry\.mirrors.*give mirrors as registry-mirrors .* instead/)])
  })

  test('that is a JSON patch too', () => {
    const patch = '[{"op":"add","path":"/plugins/io.containerd.grpc.v1.cri/registry/mirrors","value":{}}]'
    expect(judged({ containerdConfigPatchesJSON6902: [patch] }).stops).toHaveLength(1)
  })

  test.each([
    '[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "/etc/containerd/certs.d"',
    '[plugins."io.containerd.grpc.v1.cri".containerd]\n  snapshotter = "native"',
    '# the registry.mirrors of old are gone\n[debug]\n  level = "debug"',
  ])('with anything else is fine: %s', patch => {
    expect(judged({ containerdConfigPatches: [patch] })).toEqual({ stops: [], warnings: [] })
  })
})

describe('reservations', () => {
  const patched = { kubeadmConfigPatches: ['kind: KubeletConfiguration\nsystemReserved: {cpu: 100m}'] }

  test('of a patch and of cpus or memory do not go together', () => {
    for (const asked of [{ cpus: 1 }, { memory: 2 ** 31 }]) {
      const { stops } = judgeConfig(anOptions({ config: { ...cluster, ...patched }, ...asked }), here)
      expect(stops).toEqual([
        'config: a patch sets systemReserved, and so do cpus and memory; leave out one of the two',
      ])
    }
  })

  test('of a patch alone are the user’s', () => {
    expect(judged(patched).stops).toEqual([])
  })
})

describe('an address that only the engine itself reaches', () => {
  const mapped = (listenAddress: string): object => ({
    nodes: [{ extraPortMappings: [{ containerPort: 30080, listenAddress }] }],
  })

  test.each<[string, object, string | undefined]>([
    ['ports', { ports: '127.0.0.1:8080:30080' }, '30080 is published at 127.0.0.1 '],
    ['ports', { ports: '[::1]:8080:30080' }, '30080 is published at ::1 '],
    ['the config', { config: { ...cluster, ...mapped('127.0.0.2') } }, '30080 is published at 127.0.0.2 '],
    ['ports', { ports: '0.0.0.0:8080:30080\n30081' }, undefined],
    ['the config', { config: { ...cluster, ...mapped('172.18.0.2') } }, undefined],
  ])('in %s: %j', (_, given, sentence) => {
    const options = parseGiven(given as never)
    const { warnings } = judgeConfig(options, here)
    expect(warnings).toEqual(sentence === undefined ? [] : [expect.stringContaining(sentence)])
    // As in a pod, where containers share the loopback, or on the engine's own machine.
    expect(judgeConfig(options, { ...here, loopback: true }).warnings).toEqual([])
  })
})

describe('what the config has of its own about registries', () => {
  const mirror = {
    ...({ upstream: 'docker.io', scheme: 'https', host: 'mirror.example', path: '' } as const),
    ...{ credentials: undefined, ca: undefined },
  }
  const mounts = {
    nodes: [{ extraMounts: [{ hostPath: '/hosts', containerPath: '/etc/containerd/certs.d/docker.io' }] }],
  }
  const elsewhere = { containerdConfigPatches: ['[plugins.a.registry]\n  config_path = "/etc/own"'] }

  test.each([
    [mounts, 'config: it mounts something at /etc/containerd/certs.d, and registry and registry-mirrors write to '],
    [elsewhere, "config: it sets containerd's config_path to /etc/own, and registry and registry-mirrors write to "],
  ])('%j does not go with a registry or mirrors', (own, sentence) => {
    const config = { ...cluster, ...own }
    for (const asked of [{ registry: { port: undefined } }, { registryMirrors: [mirror] }]) {
      expect(judgeConfig(anOptions({ config, ...asked }), here).stops).toEqual([expect.stringContaining(sentence)])
    }
    expect(judgeConfig(anOptions({ config }), here).stops).toEqual([])
  })

  test.each(['"/etc/containerd/certs.d"', "'/etc/containerd/certs.d/'"])('the usual folder %s does', path => {
    const config = { ...cluster, containerdConfigPatches: [`[plugins.a.registry]\n  config_path = ${path}`] }
    expect(judgeConfig(anOptions({ config, registryMirrors: [mirror] }), here).stops).toEqual([])
  })
})
