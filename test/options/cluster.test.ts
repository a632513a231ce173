import { expect, test } from 'vitest'
import { CLUSTER_OPTIONS } from '../../src/options/cluster.ts'
import { CLUSTER, judgeOptions, refusals, SHA256 } from './judge.ts'

judgeOptions(CLUSTER_OPTIONS, {
  good: [
    ['name', 'e2e', { name: 'e2e' }],
    ['name', ' My App! ', { name: 'My App!' }],
    ['name', 42, { name: '42' }],
    ['kind-version', 'v0.33.0', { kindVersion: { kind: 'release', version: 'v0.33.0', sha256: undefined } }],
    ['kind-version', '0.33.0', { kindVersion: { kind: 'release', version: 'v0.33.0', sha256: undefined } }],
    [
      'kind-version',
      'v0.34.0-alpha.1',
      { kindVersion: { kind: 'release', version: 'v0.34.0-alpha.1', sha256: undefined } },
    ],
    [
      'kind-version',
      `v0.33.0@sha256:${SHA256}`,
      { kindVersion: { kind: 'release', version: 'v0.33.0', sha256: SHA256 } },
    ],
    ['kind-version', 'latest', { kindVersion: { kind: 'latest' } }],
    ['kind-version', 'installed', { kindVersion: { kind: 'installed' } }],
    ['kubernetes-version', '1.34', { nodeImage: { kind: 'version', version: '1.34' } }],
    ['kubernetes-version', 'v1.34', { nodeImage: { kind: 'version', version: '1.34' } }],
    ['kubernetes-version', 'v1.34.0', { nodeImage: { kind: 'version', version: '1.34.0' } }],
    ['kubernetes-version', '1.30', { nodeImage: { kind: 'version', version: '1.30' } }],
    ['kubernetes-version', 1.34, { nodeImage: { kind: 'version', version: '1.34' } }],
    ['node-image', './node.tar.zst', { nodeImage: { kind: 'archive', path: './node.tar.zst' } }],
    ['node-image', 'kindest/node:v1.34.0', { nodeImage: { kind: 'image', reference: 'kindest/node:v1.34.0' } }],
    [
      'node-image',
      `registry.example:5000/a/b_c:1@sha256:${SHA256}`,
      { nodeImage: { kind: 'image', reference: `registry.example:5000/a/b_c:1@sha256:${SHA256}` } },
    ],
    [
      'config',
      'kind.yaml',
      { config: { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4', nodes: [{ role: 'control-plane' }] } },
    ],
    ['config', CLUSTER, { config: { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4' } }],
    [
      'config',
      '{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4, featureGates: {A: true}, name: null}',
      { config: { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4', featureGates: { A: true } } },
    ],
    [
      'config',
      { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4' },
      { config: { kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4' } },
    ],
    ['workers', 2, { workers: 2 }],
    ['workers', '2', { workers: 2 }],
    ['workers', ' 0 ', { workers: 0 }],
    ['cpus', '1500m', { cpus: 1.5 }],
    ['cpus', 2, { cpus: 2 }],
    ['memory', '4Gi', { memory: 4 * 1024 ** 3 }],
    ['memory', '512M', { memory: 512e6 }],
    ['ports', '30080', { ports: [{ node: 30080, outer: undefined, address: undefined, protocol: 'TCP' }] }],
    ['ports', 30080, { ports: [{ node: 30080, outer: undefined, address: undefined, protocol: 'TCP' }] }],
    ['ports', '8080:30080', { ports: [{ node: 30080, outer: 8080, address: undefined, protocol: 'TCP' }] }],
    ['ports', '127.0.0.1:53:30053/udp', { ports: [{ node: 30053, outer: 53, address: '127.0.0.1', protocol: 'UDP' }] }],
    ['ports', '[::1]:8080:30080/SCTP', { ports: [{ node: 30080, outer: 8080, address: '::1', protocol: 'SCTP' }] }],
    [
      'ports',
      [30080, '8443:30443'],
      {
        ports: [
          { node: 30080, outer: undefined, address: undefined, protocol: 'TCP' },
          { node: 30443, outer: 8443, address: undefined, protocol: 'TCP' },
        ],
      },
    ],
    [
      'ports',
      '30053/udp,30053/tcp',
      {
        ports: [
          { node: 30053, outer: undefined, address: undefined, protocol: 'UDP' },
          { node: 30053, outer: undefined, address: undefined, protocol: 'TCP' },
        ],
      },
    ],
    [
      'ports',
      '1,65535',
      { ports: [1, 65535].map(node => ({ node, outer: undefined, address: undefined, protocol: 'TCP' })) },
    ],
    ['kubectl-version', 'v1.34.1', { kubectlVersion: { kind: 'release', version: 'v1.34.1' } }],
    ['kubectl-version', '1.34.1', { kubectlVersion: { kind: 'release', version: 'v1.34.1' } }],
    ['kubectl-version', 'skip', { kubectlVersion: { kind: 'skip' } }],
    ['wait', '90s', { wait: 90_000 }],
    ['wait', '1h30m', { wait: 5_400_000 }],
    ['wait', '0', { wait: 0 }],
    ['wait', 0, { wait: 0 }],
  ],
  wrong: [
    ['name: ["a"] is not text', { name: ['a'] }],
    ['name: "---" has nothing in it that a cluster name may have: letters and digits', { name: '---' }],
    ['name: "äöü" has nothing in it that a cluster name may have: letters and digits', { name: 'äöü' }],
    ['kind-version: "0.33" is not a kind release such as v0.33.0, nor latest or installed', { 'kind-version': '0.33' }],
    [
      'kind-version: "v0.33.0@sha256:ab" is not a kind release such as v0.33.0, nor latest or installed',
      { 'kind-version': 'v0.33.0@sha256:ab' },
    ],
    ['kubernetes-version: 1.3 may be 1.30 read as a number; quote it, such as "1.30"', { 'kubernetes-version': 1.3 }],
    ['kubernetes-version: 1.3 may be 1.30 read as a number; quote it, such as "1.30"', { 'kubernetes-version': '1.3' }],
    ['kubernetes-version: "stable" is not a version such as 1.34 or v1.34.0', { 'kubernetes-version': 'stable' }],
    ['kubernetes-version: "2.10" is not a version such as 1.34 or v1.34.0', { 'kubernetes-version': '2.10' }],
    [
      'kubernetes-version, node-image: give one of the two; a node image fixes the Kubernetes version',
      { 'kubernetes-version': '1.34', 'node-image': 'kindest/node:v1.34.0' },
    ],
    [
      'kubernetes-version: there is no node image for 1.99 in the table, which has 1.37.0, 1.36.1, 1.35.0, 1.34.0, 1.33.1, 1.32.2, 1.32.0, 1.31.2, 1.31.0, 1.30.0, 1.29.2, 1.29.1, 1.27.3; take one of these or give another image as node-image',
      { 'kubernetes-version': '1.99' },
    ],
    [
      'node-image: "Kind Node" is not an image reference such as registry.example/app:ci',
      { 'node-image': 'Kind Node' },
    ],
    ['config: "missing.yaml" is no file here, and no inline config either', { config: 'missing.yaml' }],
    ['config: "empty.yaml" is empty', { config: 'empty.yaml' }],
    [
      'config: "pod.yaml" is not a kind Cluster config (kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4) but has kind: Pod, apiVersion: v1',
      { config: 'pod.yaml' },
    ],
    ['config: it is not a kind Cluster config', { config: '- a: b' }],
    [
      'config: it is not a kind Cluster config (kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4) but has kind: Cluster, apiVersion: v1',
      { config: { kind: 'Cluster', apiVersion: 'v1' } },
    ],
    ['config: it has nodes that is no list', { config: `${CLUSTER}nodes: 3` }],
    ['config: it has nodes[0] that is no mapping', { config: `${CLUSTER}nodes:\n-\n- role: worker` }],
    ['config: it has no node with the role control-plane', { config: `${CLUSTER}nodes: [{role: worker}]` }],
    [
      'config: it has nodes[0].role: boss; there are control-plane and worker',
      { config: `${CLUSTER}nodes: [{role: boss}]` },
    ],
    [
      'config: it has nodes[0].extraPortMappings that is no list',
      { config: `${CLUSTER}nodes: [{extraPortMappings: {}}]` },
    ],
    ['config: it has 2 YAML documents, and kind takes one Cluster', { config: `${CLUSTER}---\n${CLUSTER}` }],
    ['workers: "two" is not a whole number', { workers: 'two' }],
    ['workers: 1.5 is not a whole number', { workers: 1.5 }],
    ['workers: a value is missing', { workers: true }],
    ['workers: 31 is not between 0 and 30', { workers: '31' }],
    ['workers: -1 is not between 0 and 30', { workers: -1 }],
    [
      'workers: the config lists nodes already; add `- role: worker` there instead',
      { config: 'kind.yaml', workers: 1 },
    ],
    ['cpus: "two" is not a quantity such as 2 or 1500m', { cpus: 'two' }],
    ['cpus: 0 is not a quantity such as 2 or 1500m', { cpus: 0 }],
    ['memory: "4" is 4 bytes; write the unit, such as 4Gi', { memory: '4' }],
    ['ports: "65536" has a port that is not between 1 and 65535', { ports: '65536' }],
    ['ports: "0" has a port that is not between 1 and 65535', { ports: 0 }],
    ['ports: "70000:30080" has a port that is not between 1 and 65535', { ports: ['30081', '70000:30080'] }],
    ['ports: "http" is neither a port nor [address:]outer:node[/protocol]', { ports: 'http' }],
    ['ports: "-1" is neither a port nor [address:]outer:node[/protocol]', { ports: '-1' }],
    ['ports: "docker:80:30080" is neither a port nor [address:]outer:node[/protocol]', { ports: 'docker:80:30080' }],
    ['ports: "30080/icmp" has the protocol icmp; there are tcp, udp and sctp', { ports: '30080/icmp' }],
    ['ports: 30080 is there twice', { ports: '8080:30080,8081:30080' }],
    ["ports: the engine's port 8080 is there twice", { ports: '8080:30080,8080:30081' }],
    ['ports: "999.1.1.1:8080:30080" has an address that is none: 999.1.1.1', { ports: '999.1.1.1:8080:30080' }],
    ['kubectl-version: "1.34" is not a version such as v1.34.0, nor skip', { 'kubectl-version': '1.34' }],
    ['wait: "300" is not a duration; write it with its unit, such as 90s or 5m', { wait: '300' }],
    ['wait: 300 is not a duration; write it with its unit, such as 90s or 5m', { wait: 300 }],
    ['wait: "600h" is longer than a job may take; at most 24h', { wait: '600h' }],
  ],
})

test.each([
  ['a file', 'broken.yaml', /^config: "broken\.yaml" is not YAML: \S.* at line 1, column 7$/],
  ['inline', 'kind: Cluster\n  nodes: [', /^config: it is not YAML: \S.* at line 1, column 7$/],
])('a config that is not YAML, in %s, is refused with why', (_, config, sentence) => {
  expect(refusals({ config })).toEqual([expect.stringMatching(sentence)])
})
