/** The options of the cluster itself: versions, nodes, what pods get, ports. Pure. */
import { isIP } from 'node:net'
import { checkKindConfig, type KindConfig, readKindConfig } from '../kind-config.ts'
import {
  duration,
  type Given,
  integer,
  list,
  memoryQuantity,
  quantity,
  type Reader,
  show,
  text,
  versionText,
} from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { isArchiveName, reference } from './images.ts'
import type { Option, ParseWorld, ReadFile } from './option.ts'

export const CLUSTER_OPTIONS: readonly Option[] = [
  {
    name: 'name',
    schema: 'name',
    default: 'derived, unique for each use',
    sentence: 'Cluster name. It is made valid where it is not, with a hash suffix if it had to change.',
  },
  {
    name: 'kind-version',
    schema: 'version',
    default: 'a pinned release',
    sentence:
      'A kind release such as `v0.33.0`, `latest`, or `installed` for the one on PATH. `v0.33.0@sha256:…` pins its checksum too.',
  },
  {
    name: 'kubernetes-version',
    schema: 'version',
    default: "the pinned kind's own",
    sentence: '`1.34` or `v1.34.0`, picked from a table of node images with digests.',
  },
  {
    name: 'node-image',
    schema: 'string',
    default: '',
    sentence: 'A node image, as a reference or an archive, instead of kubernetes-version.',
  },
  {
    name: 'config',
    schema: 'config',
    default: '',
    sentence: 'A kind Cluster config, as a path or inline YAML; merged with what is needed here, never overwritten.',
  },
  {
    name: 'workers',
    schema: 'integer',
    default: '0',
    sentence: 'Worker nodes beside the control plane. Not beside a config that lists nodes.',
  },
  {
    name: 'cpus',
    schema: 'name',
    default: "all of the engine's",
    sentence: 'CPUs that each node offers to pods and is held to, as a Kubernetes quantity: `2`, `1500m`.',
  },
  {
    name: 'memory',
    schema: 'name',
    default: "all of the engine's",
    sentence: 'Memory that each node offers to pods and is held to, as a Kubernetes quantity: `4Gi`.',
  },
  {
    name: 'ports',
    schema: 'list',
    default: '',
    sentence:
      'NodePorts to publish on the first control plane: `30080` (the engine picks the outer port) or `[address:]outer:node[/protocol]`.',
  },
  {
    name: 'kubectl-version',
    schema: 'version',
    default: "the cluster's, if none is on PATH",
    sentence: 'A kubectl version to put on PATH, or `skip`.',
  },
  {
    name: 'wait',
    schema: 'duration',
    default: '5m',
    sentence: 'How long every node, CoreDNS and the default service account may take to be ready; `0` does not wait.',
  },
]

/** A NodePort to publish. */
export interface PortMapping {
  /** The port on the node: the NodePort. */
  readonly node: number
  /** The port on the engine; undefined lets the engine pick. */
  readonly outer: number | undefined
  /** The engine's address to listen on; undefined takes the narrowest that the step reaches. */
  readonly address: string | undefined
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
}

export type KindVersion =
  | { readonly kind: 'pinned' }
  | { readonly kind: 'latest' }
  | { readonly kind: 'installed' }
  | { readonly kind: 'release'; readonly version: string; readonly sha256: string | undefined }

export type NodeImage =
  | { readonly kind: 'default' }
  | { readonly kind: 'version'; readonly version: string }
  | { readonly kind: 'image'; readonly reference: string }
  | { readonly kind: 'archive'; readonly path: string }

export type KubectlVersion =
  | { readonly kind: 'cluster' }
  | { readonly kind: 'skip' }
  | { readonly kind: 'release'; readonly version: string }

export interface ClusterOptions {
  readonly name: string | undefined
  readonly kindVersion: KindVersion
  readonly nodeImage: NodeImage
  readonly config: KindConfig | undefined
  readonly workers: number
  /** CPUs; undefined for all of the engine's. */
  readonly cpus: number | undefined
  /** Bytes; undefined for all of the engine's. */
  readonly memory: number | undefined
  readonly ports: readonly PortMapping[]
  readonly kubectlVersion: KubectlVersion
  /** Milliseconds; 0 does not wait. */
  readonly wait: number
}

export function readClusterOptions({ option, refuse }: Reader, world: ParseWorld): ClusterOptions {
  const version = option<NodeImage>('kubernetes-version', value => kubernetesVersion(value, world.refuseVersion), {
    kind: 'default',
  })
  const image = option<NodeImage>('node-image', nodeImage, {
    kind: 'default',
  })
  if (version.kind !== 'default' && image.kind !== 'default') {
    refuse('kubernetes-version, node-image: give one of the two; a node image fixes the Kubernetes version')
  }
  const config = option('config', value => kindConfig(value, world.readFile), undefined)
  const workers = option('workers', value => integer(value, 0, 30), 0)
  if (workers > 0 && config?.nodes?.length) {
    refuse('workers: the config lists nodes already; add `- role: worker` there instead')
  }
  return {
    name: option('name', clusterName, undefined),
    kindVersion: option('kind-version', kindVersion, { kind: 'pinned' }),
    nodeImage: image.kind === 'default' ? version : image,
    config,
    workers,
    cpus: option('cpus', value => quantity(value, 'such as 2 or 1500m'), undefined),
    memory: option('memory', memoryQuantity, undefined),
    ports: option('ports', ports, []),
    kubectlVersion: option('kubectl-version', kubectlVersion, { kind: 'cluster' }),
    wait: option('wait', duration, 300_000),
  }
}

/** A cluster's name as people give it; `validName` makes it kind's. */
export function clusterName(value: Given): string {
  const name = typeof value === 'number' ? String(value) : text(value)
  if (!/[a-z0-9]/i.test(name)) {
    throw new Problem(`${show(value)} has nothing in it that a cluster name may have: letters and digits`)
  }
  return name
}

function kindVersion(value: Given): KindVersion {
  const word = versionText(value)
  if (word === 'latest' || word === 'installed') return { kind: word }
  const match = /^v?(\d+\.\d+\.\d+(?:-[0-9a-z.]+)?)(?:@sha256:([0-9a-f]{64}))?$/.exec(word)
  if (!match) throw new Problem(`${show(value)} is not a kind release such as v0.33.0, nor latest or installed`)
  return { kind: 'release', version: `v${match[1]}`, sha256: match[2] }
}

function kubernetesVersion(value: Given, refuse: ParseWorld['refuseVersion']): NodeImage {
  const word = versionText(value)
  if (/^v?\d+\.\d$/.test(word)) {
    throw new Problem(`${word} may be ${word}0 read as a number; quote it, such as "${word}0"`)
  }
  if (!/^v?1\.\d+(\.\d+)?$/.test(word)) throw new Problem(`${show(value)} is not a version such as 1.34 or v1.34.0`)
  const version = word.replace(/^v/, '')
  const refusal = refuse(version)
  if (refusal !== undefined) throw new Problem(refusal)
  return { kind: 'version', version }
}

function kubectlVersion(value: Given): KubectlVersion {
  const word = versionText(value)
  if (word === 'skip') return { kind: 'skip' }
  const match = /^v?(1\.\d+\.\d+)$/.exec(word)
  if (!match) throw new Problem(`${show(value)} is not a version such as v1.34.0, nor skip`)
  return { kind: 'release', version: `v${match[1]}` }
}

function nodeImage(value: Given): NodeImage {
  const word = text(value)
  return isArchiveName(word) ? { kind: 'archive', path: word } : { kind: 'image', reference: reference(word) }
}

function ports(value: Given): PortMapping[] {
  const mappings = list(value).map(portMapping)
  const seen = new Set<string>()
  for (const { node, outer, protocol } of mappings) {
    const key = `${node}/${protocol}`
    if (seen.has(key)) throw new Problem(`${node} is there twice`)
    seen.add(key)
    if (outer === undefined) continue
    const outside = `${outer}/${protocol} outside`
    if (seen.has(outside)) throw new Problem(`the engine's port ${outer} is there twice`)
    seen.add(outside)
  }
  return mappings
}

function portMapping(word: string): PortMapping {
  const match = /^(?:(?:(\[[0-9a-f:.]+\]|[0-9.]+):)?(\d+):)?(\d+)(?:\/(\w+))?$/i.exec(word)
  if (!match) throw new Problem(`${show(word)} is neither a port nor [address:]outer:node[/protocol]`)
  const [, written, outer, node, protocol = 'TCP'] = match
  const address = written?.replace(/^\[|\]$/g, '')
  if (address !== undefined && isIP(address) === 0)
    throw new Problem(`${show(word)} has an address that is none: ${written}`)
  const name = protocol.toUpperCase()
  if (name !== 'TCP' && name !== 'UDP' && name !== 'SCTP') {
    throw new Problem(`${show(word)} has the protocol ${protocol}; there are tcp, udp and sctp`)
  }
  return {
    node: port(node ?? '', word),
    outer: outer === undefined ? undefined : port(outer, word),
    address,
    protocol: name,
  }
}

function port(digits: string, word: string): number {
  const number = Number(digits)
  if (number < 1 || number > 65535) throw new Problem(`${show(word)} has a port that is not between 1 and 65535`)
  return number
}

function kindConfig(value: Given, readFile: ReadFile): KindConfig {
  const isParsed = value !== null && typeof value === 'object' && !Array.isArray(value)
  const given = isParsed ? '' : text(value)
  // A path has no line break and no "key: value" in it.
  const isPath = !isParsed && !/\n|:\s|:$|^\{/.test(given)
  try {
    if (isParsed) return checkKindConfig(value)
    if (!isPath) return readKindConfig(given)
    const content = readFile(given)
    if (content === undefined) throw new Problem('is no file here, and no inline config either')
    return readKindConfig(content)
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown
    throw new Problem(`${isPath ? show(given) : 'it'} ${thrown.message}`)
  }
}
