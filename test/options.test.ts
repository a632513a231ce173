import { describe, expect, test } from 'vitest'
import { SCHEMAS, type Schema } from '../scripts/generate.ts'
import type { Given } from '../src/lib/given.ts'
import { Problem } from '../src/lib/problem.ts'
import { OPTIONS, type Options } from '../src/options.ts'
import { parseGiven } from './builders.ts'

const CLUSTER = 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n'
const SHA256 = 'a'.repeat(64)
const FILES = {
  'kind.yaml': `${CLUSTER}nodes:\n- role: control-plane\n`,
  'buildkitd.toml': 'debug = true\n',
  'empty.yaml': '',
  'pod.yaml': 'kind: Pod\napiVersion: v1\n',
  'ca.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  'broken.yaml': 'kind: Cluster\n  nodes: [\n',
}

/** A mirror as parsed, whole and plain. */
const MIRROR = {
  scheme: 'https' as const,
  host: 'mirror.example',
  path: '',
  credentials: undefined,
  ca: undefined,
}
const PEM = FILES['ca.pem']

test('with nothing given everything has its default', () => {
  expect(parseGiven({})).toEqual({
    name: undefined,
    kindVersion: { kind: 'pinned' },
    nodeImage: { kind: 'default' },
    config: undefined,
    workers: 0,
    ports: [],
    images: [],
    pull: 'missing',
    builder: undefined,
    registry: undefined,
    registryMirrors: [],
    kubectlVersion: { kind: 'cluster' },
    wait: 300_000,
    dockerHost: undefined,
    dockerWait: 60_000,
    cpus: undefined,
    memory: undefined,
    host: undefined,
    network: undefined,
    kubeconfig: undefined,
    logs: 'on-failure',
    logsDir: undefined,
    keep: false,
    lifetime: 21_600_000,
    downloadUrls: {},
  })
})

test.each(['', '  ', '\n', null, undefined])('%j is as good as not given', value => {
  expect(parseGiven(Object.fromEntries(OPTIONS.map(({ name }) => [name, value])))).toEqual(parseGiven({}))
})

const GOOD: readonly (readonly [option: string, given: Given, parsed: Partial<Options>])[] = [
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
  ['images', 'app:ci, out/app.tar.gz', { images: ['app:ci', 'out/app.tar.gz'] }],
  ['images', ['./app', '/srv/app'], { images: ['./app', '/srv/app'] }],
  ['node-image', './node.tar.zst', { nodeImage: { kind: 'archive', path: './node.tar.zst' } }],
  ['node-image', 'kindest/node:v1.34.0', { nodeImage: { kind: 'image', reference: 'kindest/node:v1.34.0' } }],
  [
    'node-image',
    `registry.example:5000/a/b_c:1@sha256:${SHA256}`,
    { nodeImage: { kind: 'image', reference: `registry.example:5000/a/b_c:1@sha256:${SHA256}` } },
  ],
  ['summary', 'always', { summary: 'always' }],
  ['summary', 'on-failure', { summary: 'on-failure' }],
  ['workers', 2, { workers: 2 }],
  ['workers', '2', { workers: 2 }],
  ['workers', ' 0 ', { workers: 0 }],
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
  ['images', 'app:ci', { images: ['app:ci'] }],
  ['images', 'app:ci, web\n\n registry.example/db:1 \napp:ci', { images: ['app:ci', 'web', 'registry.example/db:1'] }],
  ['images', ['app:ci', 'web,db'], { images: ['app:ci', 'web', 'db'] }],
  [
    'images',
    `web@sha256:${SHA256},app:ci@sha256:${SHA256}`,
    { images: [`web@sha256:${SHA256}`, `app:ci@sha256:${SHA256}`] },
  ],
  ['pull', 'never', { pull: 'never' }],
  ['pull', 'missing', { pull: 'missing' }],
  ['registry', true, { registry: { port: undefined } }],
  ['registry', ' True ', { registry: { port: undefined } }],
  ['registry', 'false', { registry: undefined }],
  ['registry', 5001, { registry: { port: 5001 } }],
  ['registry', '5001', { registry: { port: 5001 } }],
  [
    'registry-mirrors',
    'docker.io=https://mirror.example, quay.io=http://me:p%40ss@10.0.0.1:5000/v2/quay/',
    {
      registryMirrors: [
        { ...MIRROR, upstream: 'docker.io', host: 'mirror.example' },
        {
          ...{ ...MIRROR, upstream: 'quay.io', scheme: 'http', host: '10.0.0.1:5000', path: 'quay' },
          credentials: { user: 'me', password: 'p@ss' },
        },
      ],
    },
  ],
  [
    'registry-mirrors',
    ['Registry.Example:5000=https://mirror.example/a/b ca=ca.pem'],
    { registryMirrors: [{ ...MIRROR, upstream: 'registry.example:5000', path: 'a/b', ca: PEM }] },
  ],
  ['builder', true, { builder: { driver: {}, config: undefined, flags: undefined } }],
  ['builder', ' True ', { builder: { driver: {}, config: undefined, flags: undefined } }],
  ['builder', 'false', { builder: undefined }],
  ['builder', false, { builder: undefined }],
  [
    'builder',
    'replicas=3\n\n tolerations=key=a,value=b;key=c \n"nodeselector=a=b,c=d"',
    {
      builder: {
        driver: { replicas: '3', tolerations: 'key=a,value=b;key=c', nodeselector: 'a=b,c=d' },
        ...{ config: undefined, flags: undefined },
      },
    },
  ],
  [
    'builder',
    ['replicas=2', 'rootless=true'],
    { builder: { driver: { replicas: '2', rootless: 'true' }, config: undefined, flags: undefined } },
  ],
  [
    'builder',
    { replicas: 3, rootless: true, 'requests.cpu': '500m', labels: 'a=b,c=d' },
    {
      builder: {
        driver: { replicas: '3', rootless: 'true', 'requests.cpu': '500m', labels: 'a=b,c=d' },
        ...{ config: undefined, flags: undefined },
      },
    },
  ],
  [
    'builder',
    'buildkitd-config=buildkitd.toml\nbuildkitd-flags=--debug --oci-worker-gc=false',
    { builder: { driver: {}, config: 'debug = true\n', flags: '--debug --oci-worker-gc=false' } },
  ],
  [
    'builder',
    { 'buildkitd-config': 'debug = true\n[worker.oci]\n' },
    { builder: { driver: {}, config: 'debug = true\n[worker.oci]\n', flags: undefined } },
  ],
  ['kubectl-version', 'v1.34.1', { kubectlVersion: { kind: 'release', version: 'v1.34.1' } }],
  ['kubectl-version', '1.34.1', { kubectlVersion: { kind: 'release', version: 'v1.34.1' } }],
  ['kubectl-version', 'skip', { kubectlVersion: { kind: 'skip' } }],
  ['wait', '90s', { wait: 90_000 }],
  ['wait', '1h30m', { wait: 5_400_000 }],
  ['wait', '0', { wait: 0 }],
  ['wait', 0, { wait: 0 }],
  ['docker-host', 'tcp://docker:2376', { dockerHost: 'tcp://docker:2376' }],
  ['docker-host', 'unix:///var/run/docker.sock', { dockerHost: 'unix:///var/run/docker.sock' }],
  ['docker-wait', '10s', { dockerWait: 10_000 }],
  ['docker-wait', 0, { dockerWait: 0 }],
  ['cpus', '1500m', { cpus: 1.5 }],
  ['cpus', 2, { cpus: 2 }],
  ['memory', '4Gi', { memory: 4 * 1024 ** 3 }],
  ['memory', '512M', { memory: 512e6 }],
  ['network', 'ci_default', { network: 'ci_default' }],
  ['host', 'engine.internal', { host: 'engine.internal' }],
  ['host', '10.0.0.5', { host: '10.0.0.5' }],
  ['kubeconfig', 'out/kubeconfig', { kubeconfig: 'out/kubeconfig' }],
  ['logs', 'on-failure', { logs: 'on-failure' }],
  ['logs', 'always', { logs: 'always' }],
  ['logs', ' never ', { logs: 'never' }],
  ['logs-dir', 'build/kind logs', { logsDir: 'build/kind logs' }],
  ['keep', true, { keep: true }],
  ['keep', 'TRUE', { keep: true }],
  ['keep', 'false', { keep: false }],
  ['lifetime', '90m', { lifetime: 5_400_000 }],
  ['lifetime', '72h', { lifetime: 259_200_000 }],
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
  [
    'download-url',
    'kind=https://mirror.example/{version}/kind, kubectl=http://mirror.example/{version}/{os}/{arch}/kubectl',
    {
      downloadUrls: {
        kind: 'https://mirror.example/{version}/kind',
        kubectl: 'http://mirror.example/{version}/{os}/{arch}/kubectl',
      },
    },
  ],
]

describe('what is right is taken', () => {
  test.each(GOOD)('%s: %j', (option, given, parsed) => {
    expect(parseGiven({ [option]: given }, FILES)).toEqual({ ...parseGiven({}), ...parsed })
  })

  test('every option has an example here', () => {
    expect([...new Set(GOOD.map(([option]) => option))].sort()).toEqual(OPTIONS.map(({ name }) => name).sort())
  })

  test.each(GOOD)("and plugin.yml's schema takes it too: %s: %j", (name, given) => {
    const option = OPTIONS.find(known => known.name === name)
    expect(option && accepts(SCHEMAS[option.schema], given)).toBe(true)
  })
})

describe('what is wrong is refused in one sentence that names the option', () => {
  test.each<[sentence: string, given: Readonly<Record<string, Given>>]>([
    ['logs: "sometimes" is not one of on-failure, always and never', { logs: 'sometimes' }],
    ['logs: false is not text', { logs: false }],
    ['logs-dir: a value is missing', { 'logs-dir': true }],
    // Unknown options.
    ['imagess: no such option; images is meant?', { imagess: 'app:ci' }],
    ['kind_version: no such option; kind-version is meant?', { kind_version: 'latest' }],
    ['frobnicate: no such option', { frobnicate: true }],
    ['abc: no such option', { abc: '1' }],
    // Wrong types.
    ['name: ["a"] is not text', { name: ['a'] }],
    ['workers: "two" is not a whole number', { workers: 'two' }],
    ['workers: 1.5 is not a whole number', { workers: 1.5 }],
    ['workers: a value is missing', { workers: true }],
    ['workers: 31 is not between 0 and 30', { workers: '31' }],
    ['workers: -1 is not between 0 and 30', { workers: -1 }],
    ['keep: "yes" is neither true nor false', { keep: 'yes' }],
    ['keep: 1 is neither true nor false', { keep: 1 }],
    ['summary: "sometimes" is not one of on-failure, always and never', { summary: 'sometimes' }],
    ['lifetime: "0" is over before the cluster is up; at least 1m', { lifetime: '0' }],
    ['lifetime: "721h" is longer than a job may take; at most 720h', { lifetime: '721h' }],
    ['lifetime: 6 is not a duration; write it with its unit, such as 90s or 5m', { lifetime: 6 }],
    ['images: {"a":1} is not text', { images: { a: 1 } }],
    ['images: [["app:ci"]] is not text', { images: [[['app:ci']]] }],
    ['host: "docker:2376" is neither a host name nor an address; a port does not belong here', { host: 'docker:2376' }],
    ['cpus: "two" is not a quantity such as 2 or 1500m', { cpus: 'two' }],
    ['cpus: 0 is not a quantity such as 2 or 1500m', { cpus: 0 }],
    ['memory: "4" is 4 bytes; write the unit, such as 4Gi', { memory: '4' }],
    ['network: "a b" is not a network\'s name', { network: 'a b' }],
    [
      "network: bridge is Docker's own, where nodes do not find each other by name; name another one",
      { network: 'bridge' },
    ],
    ['kubeconfig: 7 is not text', { kubeconfig: 7 }],
    ['wait: "300" is not a duration; write it with its unit, such as 90s or 5m', { wait: '300' }],
    ['wait: 300 is not a duration; write it with its unit, such as 90s or 5m', { wait: 300 }],
    ['docker-wait: "soon" is not a duration; write it with its unit, such as 90s or 5m', { 'docker-wait': 'soon' }],
    // Versions, and those that YAML made shorter.
    ['kubernetes-version: 1.3 may be 1.30 read as a number; quote it, such as "1.30"', { 'kubernetes-version': 1.3 }],
    ['kubernetes-version: 1.3 may be 1.30 read as a number; quote it, such as "1.30"', { 'kubernetes-version': '1.3' }],
    ['kubernetes-version: "stable" is not a version such as 1.34 or v1.34.0', { 'kubernetes-version': 'stable' }],
    ['kubernetes-version: "2.10" is not a version such as 1.34 or v1.34.0', { 'kubernetes-version': '2.10' }],
    ['kind-version: "0.33" is not a kind release such as v0.33.0, nor latest or installed', { 'kind-version': '0.33' }],
    [
      'kind-version: "v0.33.0@sha256:ab" is not a kind release such as v0.33.0, nor latest or installed',
      { 'kind-version': 'v0.33.0@sha256:ab' },
    ],
    ['kubectl-version: "1.34" is not a version such as v1.34.0, nor skip', { 'kubectl-version': '1.34' }],
    [
      'kubernetes-version, node-image: give one of the two; a node image fixes the Kubernetes version',
      { 'kubernetes-version': '1.34', 'node-image': 'kindest/node:v1.34.0' },
    ],
    // Names.
    ['name: "---" has nothing in it that a cluster name may have: letters and digits', { name: '---' }],
    ['name: "äöü" has nothing in it that a cluster name may have: letters and digits', { name: 'äöü' }],
    // Image references.
    [
      'node-image: "Kind Node" is not an image reference such as registry.example/app:ci',
      { 'node-image': 'Kind Node' },
    ],
    ['images: "App:ci" is not an image reference such as registry.example/app:ci', { images: 'web, App:ci' }],
    ['images: "-v" is not an image reference such as registry.example/app:ci', { images: '-v' }],
    [
      `images: "sha256:${SHA256}" is an id, by which no pod can name an image; tag it (docker tag) and name the tag`,
      { images: `sha256:${SHA256}` },
    ],
    ['pull: "always" is neither missing nor never', { pull: 'always' }],
    // Ports.
    ['ports: "65536" has a port that is not between 1 and 65535', { ports: '65536' }],
    ['ports: "0" has a port that is not between 1 and 65535', { ports: 0 }],
    ['ports: "70000:30080" has a port that is not between 1 and 65535', { ports: ['30081', '70000:30080'] }],
    ['ports: "http" is neither a port nor [address:]outer:node[/protocol]', { ports: 'http' }],
    ['ports: "-1" is neither a port nor [address:]outer:node[/protocol]', { ports: '-1' }],
    ['ports: "docker:80:30080" is neither a port nor [address:]outer:node[/protocol]', { ports: 'docker:80:30080' }],
    ['ports: "30080/icmp" has the protocol icmp; there are tcp, udp and sctp', { ports: '30080/icmp' }],
    ['ports: 30080 is there twice', { ports: '8080:30080,8081:30080' }],
    // The registry.
    ['registry: "yes" is neither true nor false, nor a port such as 5001', { registry: 'yes' }],
    ['registry: 0 is not between 1 and 65535', { registry: 0 }],
    ['registry: 65536 is not between 1 and 65535', { registry: '65536' }],
    ["registry, ports: both ask for the engine's port 5001", { registry: 5001, ports: '30080, 5001:30081' }],
    // Mirrors. What may be a password is never shown.
    [
      'registry-mirrors: "https://mirror.example" is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without',
      { 'registry-mirrors': 'https://mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example plain" is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without',
      { 'registry-mirrors': 'docker.io=https://me:secret@mirror.example plain' },
    ],
    [
      'registry-mirrors: "https://quay.io=https://mirror.example" names https://quay.io as a registry; write it as references do: docker.io, registry.example:5000',
      { 'registry-mirrors': 'https://quay.io=https://mirror.example' },
    ],
    [
      'registry-mirrors: "registry-1.docker.io=https://mirror.example" is for Docker Hub, whose images are of docker.io: write that',
      { 'registry-mirrors': 'registry-1.docker.io=https://mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=mirror.example" has no http or https URL',
      { 'registry-mirrors': 'docker.io=mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has no http or https URL',
      { 'registry-mirrors': 'docker.io=https://me:se/cret@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://mirror.example/?a=b" has more than a path in its URL; what a password has of ?, #, @ and / is written as %3F, %23, %40 and %2F',
      { 'registry-mirrors': 'docker.io=https://mirror.example/?a=b' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has only one of user and password',
      { 'registry-mirrors': 'docker.io=https://me@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has a % in its user or password that begins no such code; write it as %25',
      { 'registry-mirrors': 'docker.io=https://me:100%@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://mirror.example ca=missing.pem" names missing.pem, which is no file here',
      { 'registry-mirrors': 'docker.io=https://mirror.example ca=missing.pem' },
    ],
    [
      'registry-mirrors: "docker.io=https://mirror.example ca=pod.yaml" names pod.yaml, which has no certificate in it (PEM)',
      { 'registry-mirrors': 'docker.io=https://mirror.example ca=pod.yaml' },
    ],
    [
      'registry-mirrors: "docker.io=http://mirror.example ca=ca.pem" has a ca, which plain http has no use for',
      { 'registry-mirrors': 'docker.io=http://mirror.example ca=ca.pem' },
    ],
    [
      'registry-mirrors: docker.io=https://mirror.example is there twice',
      { 'registry-mirrors': 'docker.io=https://mirror.example, docker.io=https://mirror.example/' },
    ],
    // Engines.
    [
      'docker-host: "docker:2375" is not an engine\'s address such as tcp://docker:2376 or unix:///var/run/docker.sock',
      { 'docker-host': 'docker:2375' },
    ],
    // Downloads.
    [
      'download-url: "https://mirror.example/{version}" is not NAME=URL; names are kind, kubectl, buildx, node',
      { 'download-url': 'https://mirror.example/{version}' },
    ],
    [
      'download-url: "kind=https://mirror.example/kind" does not say where the {version} goes',
      { 'download-url': 'kind=https://mirror.example/kind' },
    ],
    // Builders.
    ['builder: "yes" is neither true nor false, nor a driver option such as replicas=3', { builder: 'yes' }],
    ['builder: "=3" is neither true nor false, nor a driver option such as replicas=3', { builder: '=3' }],
    [
      'builder: labels is {"a":"b"}; write it as one text, as buildx takes it, such as "a=b,c=d"',
      { builder: { labels: { a: 'b' } } },
    ],
    ['builder: 3 is not text', { builder: 3 }],
    [
      'builder: buildkitd-config: "missing.toml" is no file here, and no TOML either',
      { builder: 'buildkitd-config=missing.toml' },
    ],
    // Configs.
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
    [
      'kubernetes-version: there is no node image for 1.99 in the table, which has 1.37.0, 1.36.1, 1.35.0, 1.34.0, 1.33.1, 1.32.2, 1.32.0, 1.31.2, 1.31.0, 1.30.0, 1.29.2, 1.29.1, 1.27.3; take one of these or give another image as node-image',
      { 'kubernetes-version': '1.99' },
    ],
    ["ports: the engine's port 8080 is there twice", { ports: '8080:30080,8080:30081' }],
    ['ports: "999.1.1.1:8080:30080" has an address that is none: 999.1.1.1', { ports: '999.1.1.1:8080:30080' }],
    ['wait: "600h" is longer than a job may take; at most 24h', { wait: '600h' }],
    [
      'download-url: "kind=https://***@host/x" does not say where the {version} goes',
      { 'download-url': 'kind=https://me:secret@host/x' },
    ],
    [
      'docker-host: "tcp://***@docker:2375" is not an engine\'s address such as tcp://docker:2376 or unix:///var/run/docker.sock',
      { 'docker-host': 'tcp://me:secret@docker:2375' },
    ],
    [
      'workers: the config lists nodes already; add `- role: worker` there instead',
      { config: 'kind.yaml', workers: 1 },
    ],
  ])('%s', (sentence, given) => {
    expect(refusals(given)).toEqual([sentence])
  })

  test.each([
    ['a file', 'broken.yaml', /^config: "broken\.yaml" is not YAML: \S.* at line 1, column 7$/],
    ['inline', 'kind: Cluster\n  nodes: [', /^config: it is not YAML: \S.* at line 1, column 7$/],
  ])('a config that is not YAML, in %s, with why', (_, config, sentence) => {
    expect(refusals({ config })).toEqual([expect.stringMatching(sentence)])
  })

  test('all at once', () => {
    const given = {
      nope: 1,
      'kubernetes-version': 1.3,
      workers: -1,
      name: '!',
      ports: '0',
      config: 'missing.yaml',
      keep: 'maybe',
    }
    expect(refusals(given).map(sentence => sentence.split(':')[0])).toEqual(
      expect.arrayContaining(['nope', 'kubernetes-version', 'workers', 'name', 'ports', 'config', 'keep']),
    )
    expect(refusals(given)).toHaveLength(7)
  })
})

/** The sentences with which these options are refused. */
function refusals(given: Readonly<Record<string, Given>>): string[] {
  try {
    parseGiven(given, FILES)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Problem)
    return (thrown as Problem).message.split('\n')
  }
  return []
}

/** A JSON schema validator for as much of it as plugin.yml uses. */
function accepts({ type, items }: Schema, value: Given): boolean {
  const types = typeof type === 'string' ? [type] : type
  if (Array.isArray(value))
    return types.includes('array') && value.every(item => items !== undefined && accepts(items, item))
  return types.includes(typeof value) || (types.includes('integer') && Number.isInteger(value))
}
