import { isIP } from 'node:net'
import { resolve } from 'node:path'
import type { KindConfig, KindNode } from '../kind-config.ts'
import { Problem } from '../lib/problem.ts'
import type { NodeImage, Options, PortMapping } from '../options.ts'
import { nodeRoles } from '../plan.ts'

/** kubeadm's API versions that kind writes for the Kubernetes it supports (its pkg/cluster/internal/kubeadm/config.go). */
const KUBEADM_VERSIONS = ['v1beta3', 'v1beta4'] as const

/** What the place where the engine runs asks of the config. */
export interface Place {
  /** The engine's address on which ports are published. */
  readonly listenAddress: string
  /** The names and addresses that the API server's certificate must hold. */
  readonly names: readonly string[]
  /** True where the engine is reached over tcp. */
  readonly remote: boolean
  /** True where kind's config has networking.dnsSearch. */
  readonly dnsSearch: boolean
  /** The image of nodes that the config gives none. */
  readonly nodeImage: string
  /** True where containerd has to be told of /etc/containerd/certs.d, see `needsCertsFolder`. */
  readonly certsFolder: boolean
  /** A KubeletConfiguration patch of ours; undefined where there is none. */
  readonly kubelet: string | undefined
}

/**
 * Merges the user's kind config with what this program needs. What the user says stands.
 *
 * @returns a kind Cluster config; JSON, which kind reads as the YAML that it is
 * @throws Problem where the two cannot go together
 */
export function kindConfig(options: Pick<Options, 'config' | 'workers' | 'ports'>, place: Place): KindConfig {
  const given = options.config ?? {}
  const controlPlanes = nodeRoles(options).filter(role => role === 'control-plane').length
  if (controlPlanes > 1 && place.remote) {
    throw new Problem(
      `config: ${controlPlanes} control planes need an engine on this machine; kind picks the load balancer's port here, not on a remote engine`,
    )
  }
  const networking = {
    ipFamily: 'ipv4',
    apiServerAddress: place.listenAddress,
    apiServerPort: -1,
    // Pods would inherit the search domains of the engine's machine. Below some of them DNS has an answer for everything, and
    // then no name with less than five dots means what it says: https://github.com/kubernetes-sigs/kind/issues/1860
    ...(place.dnsSearch ? { dnsSearch: [] } : {}),
    ...given.networking,
  }
  if (controlPlanes > 1 && given.networking?.['apiServerPort'] === undefined) networking.apiServerPort = 0
  return {
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    ...given,
    networking,
    nodes: nodes(options, place),
    kubeadmConfigPatches: [
      ...(given.kubeadmConfigPatches ?? []),
      ...(place.kubelet === undefined ? [] : [place.kubelet]),
    ],
    ...(place.certsFolder ? { containerdConfigPatches: [...(given.containerdConfigPatches ?? []), CERTS_FOLDER] } : {}),
    kubeadmConfigPatchesJSON6902: [
      ...((given['kubeadmConfigPatchesJSON6902'] as readonly unknown[] | undefined) ?? []),
      ...KUBEADM_VERSIONS.map(version => certificateNames(version, networking.apiServerAddress, place.names)),
    ],
  }
}

/** Where nodes have a folder for each registry: https://github.com/containerd/containerd/blob/main/docs/hosts.md. */
const CERTS_PATH = '/etc/containerd/certs.d'
const CERTS_FOLDER = `[plugins."io.containerd.grpc.v1.cri".registry]\n  config_path = "${CERTS_PATH}"\n`

/**
 * Whether the nodes' containerd has yet to be told where the folders of registries are. Node images of kind v0.27 and later
 * tell it by themselves (https://kind.sigs.k8s.io/docs/user/local-registry/); with Kubernetes 1.33 and later there are no
 * older ones. Others are told once more, which costs a restart of containerd.
 *
 * @param kubernetesVersion such as v1.34.0; undefined where nothing tells it before creation
 */
export function needsCertsFolder(kubernetesVersion: string | undefined): boolean {
  return Number(/^v1\.(\d+)/.exec(kubernetesVersion ?? '')?.[1] ?? 0) < 33
}

/**
 * Adds names to the API server's certificate. A JSON patch, since a merge patch would replace kind's own names or the
 * user's; one for each API version, since such a patch matches one version alone and is passed over elsewhere.
 */
function certificateNames(version: string, address: string, names: readonly string[]): object {
  const lower = ['localhost', '127.0.0.1', address, ...names].map(name => name.toLowerCase())
  const all = [...new Set(lower)].filter(fitsCertificate)
  return {
    group: 'kubeadm.k8s.io',
    version,
    kind: 'ClusterConfiguration',
    patch: JSON.stringify(all.map(value => ({ op: 'add', path: '/apiServer/certSANs/-', value }))),
  }
}

/**
 * Whether kubeadm takes a name into the certificate: an address, or a DNS-1123 name (ValidateCertSANs). A container's name
 * may have an underscore; then its addresses get there.
 */
function fitsCertificate(name: string): boolean {
  const label = '[a-z0-9]([a-z0-9-]*[a-z0-9])?'
  return (isIP(name) !== 0 && !name.includes('%')) || new RegExp(`^${label}(\\.${label})*$`).test(name)
}

/** True where the user's config lets the kubelet run on cgroup v1, which it refuses from Kubernetes 1.35 on. */
export function allowsCgroupV1(config: KindConfig | undefined): boolean {
  return /failCgroupV1\W+false/.test(JSON.stringify(config ?? {}))
}

/** The paths that the config mounts into nodes, absolute: kind takes a relative one from the current folder. */
export function mountedPaths(config: KindConfig | undefined): string[] {
  const mounts = (config?.nodes ?? []).flatMap(node => node.extraMounts ?? [])
  return [...new Set(mounts.flatMap(({ hostPath }) => (typeof hostPath === 'string' ? [resolve(hostPath)] : [])))]
}

/**
 * What the config has of its own about registries, which is not to be written over: a folder that is mounted, or another one
 * that containerd looks in. Undefined where there is nothing; containerd's usual folder is ours too.
 */
export function ownRegistries(config: KindConfig | undefined): string | undefined {
  const mounts = (config?.nodes ?? []).flatMap(node => node.extraMounts ?? [])
  if (mounts.some(({ containerPath }) => typeof containerPath === 'string' && containerPath.startsWith(CERTS_PATH)))
    return `mounts something at ${CERTS_PATH}`
  const patches = JSON.stringify(config?.containerdConfigPatches ?? [])
  const path = /config_path\s*=\s*\\?["']([^"'\\]*)/.exec(patches)?.[1]
  return path === undefined || path.replace(/\/$/, '') === CERTS_PATH
    ? undefined
    : `sets containerd's config_path to ${path}`
}

/** The node image that options and config ask for; the options come first, since the config may name one for each node. */
export function chosenImage(options: Pick<Options, 'config' | 'nodeImage'>): NodeImage {
  const named = options.config?.nodes?.find(node => node.image !== undefined)?.image
  return options.nodeImage.kind !== 'default' || named === undefined
    ? options.nodeImage
    : { kind: 'image', reference: named }
}

/** Every image of the nodes: those that the config names, and the one for the rest. */
export function nodeImages(options: Pick<Options, 'config'>, image: string): string[] {
  return [...new Set([image, ...(options.config?.nodes ?? []).flatMap(node => node.image ?? [])])]
}

/** The config with its nodes' images by other names. */
export function withImages(config: KindConfig, names: ReadonlyMap<string, string>): KindConfig {
  const renamed = (config.nodes ?? []).map(node => ({ ...node, image: names.get(node.image ?? '') ?? node.image }))
  return { ...config, nodes: renamed.map(({ image, ...node }) => (image === undefined ? node : { ...node, image })) }
}

/** The ports that options and config ask the engine for; where both name one, it is the config's. kind listens on every address by itself. */
export function fixedPorts({ config, ports }: Pick<Options, 'config' | 'ports'>): PortMapping[] {
  const mappings = (config?.nodes ?? []).flatMap(node => node.extraPortMappings ?? [])
  const mapped = mappings.flatMap(({ containerPort, hostPort, listenAddress, protocol = 'TCP' }) => {
    if (typeof containerPort !== 'number' || typeof hostPort !== 'number' || hostPort <= 0) return []
    const address = typeof listenAddress === 'string' && listenAddress !== '' ? listenAddress : '0.0.0.0'
    return [{ node: containerPort, outer: hostPort, address, protocol: protocol as PortMapping['protocol'] }]
  })
  const others = ports.filter(
    port => !mapped.some(({ node, protocol }) => node === port.node && protocol === port.protocol),
  )
  return [...others, ...mapped]
}

/** The nodes as the user listed them, or one control plane and the workers; the first control plane gets the ports. */
function nodes(options: Pick<Options, 'config' | 'workers' | 'ports'>, place: Place): KindNode[] {
  const listed = options.config?.nodes
  const all: readonly KindNode[] =
    listed && listed.length > 0 ? listed : nodeRoles(options).map((role): KindNode => ({ role }))
  const first = all.findIndex(node => (node.role ?? 'control-plane') === 'control-plane')
  return all.map((given, index) => {
    const node = { ...given, image: given.image ?? place.nodeImage }
    if (index !== first || options.ports.length === 0) return node
    const own = node.extraPortMappings ?? []
    const added = options.ports.filter(port => !isMapped(port, own))
    return { ...node, extraPortMappings: [...own, ...added.map(port => portMapping(port, place.listenAddress))] }
  })
}

/**
 * Whether the config maps a port already.
 *
 * @throws Problem where it maps it otherwise than the option asks
 */
function isMapped(port: PortMapping, mappings: readonly Readonly<Record<string, unknown>>[]): boolean {
  const mapped = mappings.find(
    mapping =>
      mapping['containerPort'] === port.node && String(mapping['protocol'] ?? 'TCP').toUpperCase() === port.protocol,
  )
  if (mapped !== undefined && port.outer !== undefined && mapped['hostPort'] !== port.outer) {
    throw new Problem(
      `ports: the config publishes ${port.node} at ${String(mapped['hostPort'] ?? 'a port that kind picks')} and not at ${port.outer}; leave one of the two out`,
    )
  }
  return mapped !== undefined
}

/** In kind's config 0 means "kind picks, on its own machine"; -1 means "the engine picks". */
function portMapping(port: PortMapping, listenAddress: string): Record<string, unknown> {
  return {
    containerPort: port.node,
    hostPort: port.outer ?? -1,
    listenAddress: port.address ?? listenAddress,
    protocol: port.protocol,
  }
}
