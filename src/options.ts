/**
 * Every option: its name, type, default and sentence. action.yml, plugin.yml and the README's table are written from
 * this list (scripts/generate.ts); `parse` turns what a host was given into one readonly object. Pure, a leaf.
 */
import { isIP } from 'node:net'
import { checkKindConfig, type KindConfig, readKindConfig } from './kind-config.ts'
import {
  boolean,
  duration,
  type Given,
  integer,
  list,
  memoryQuantity,
  quantity,
  readGiven,
  show,
  text,
  versionText,
} from './lib/given.ts'
import { Problem } from './lib/problem.ts'
import { type Mirror, readMirror } from './registry-mirrors.ts'

export interface Option {
  readonly name: string
  /** The JSON schema of the values that plugin.yml accepts. */
  readonly schema:
    | 'string'
    | 'name'
    | 'boolean'
    | 'boolean or port'
    | 'integer'
    | 'duration'
    | 'list'
    | 'version'
    | 'config'
    | 'builder'
  /** As shown to people; what an absent option means. */
  readonly default: string
  readonly sentence: string
}

export const OPTIONS: readonly Option[] = [
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
    name: 'images',
    schema: 'list',
    default: '',
    sentence:
      'References and archives of images to have in every node before the job goes on; the engine pulls what it lacks.',
  },
  {
    name: 'pull',
    schema: 'string',
    default: 'missing',
    sentence: '`missing` or `never`: whether the engine may pull what it lacks of `images`.',
  },
  {
    name: 'registry',
    schema: 'boolean or port',
    default: 'false',
    sentence: 'A registry for the job: `true`, or the port of the engine that it is to have.',
  },
  {
    name: 'registry-mirrors',
    schema: 'list',
    default: '',
    sentence:
      'Where images are looked for first, by nodes and for what is pulled here: `docker.io=https://mirror.example`, also with `user:password@`, a folder, `http:` or a CA: `quay.io=https://mirror.example/quay ca=ca.pem`.',
  },
  {
    name: 'builder',
    schema: 'builder',
    default: 'false',
    sentence:
      "A buildx builder on the cluster: `true`, or its driver's options as lines of `key=value`, such as `replicas=3`.",
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
  {
    name: 'docker-host',
    schema: 'string',
    default: 'found',
    sentence: 'The engine, as DOCKER_HOST names it: `tcp://docker:2376` or `unix:///var/run/docker.sock`.',
  },
  {
    name: 'docker-wait',
    schema: 'duration',
    default: '60s',
    sentence: 'How long the engine may take to answer.',
  },
  {
    name: 'host',
    schema: 'string',
    default: 'found by trying',
    sentence:
      'Name or address by which the step reaches what the engine publishes, where it is not that of the engine.',
  },
  {
    name: 'network',
    schema: 'string',
    default: "one of the cluster's own",
    sentence: "An existing Docker network's name, which stays, or a name for one to make.",
  },
  {
    name: 'kubeconfig',
    schema: 'string',
    default: "a file in the job's folder",
    sentence: 'Where to write the kubeconfig (mode 0600): a new file, removed with the cluster.',
  },
  {
    name: 'summary',
    schema: 'string',
    default: 'always on GitHub, on-failure on Buildkite',
    sentence:
      "When to show a summary (the job's on GitHub, an annotation on Buildkite): `always`, `on-failure` or `never`.",
  },
  {
    name: 'logs',
    schema: 'string',
    default: 'on-failure',
    sentence: "When to export the cluster's logs: `on-failure` (of its start or of the job), `always` or `never`.",
  },
  {
    name: 'logs-dir',
    schema: 'string',
    default: "a folder of the job's",
    sentence: 'Where to export them to: a folder, in which each cluster gets one of its name.',
  },
  {
    name: 'keep',
    schema: 'boolean',
    default: 'false',
    sentence: 'Leave the cluster up after the job, for a look. The log says how to remove it.',
  },
  {
    name: 'lifetime',
    schema: 'duration',
    default: '6h',
    sentence: 'How long after its start anyone may remove the cluster, kept or not; more than the job takes.',
  },
  {
    name: 'download-url',
    schema: 'list',
    default: "the projects' own release pages",
    sentence:
      'Where to download from: `kind=https://mirror.example/{version}/kind-{os}-{arch}`, likewise `kubectl=`, `buildx=`, and `node=` for agents without Node 20.',
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

/** A registry for the job. */
export interface RegistryWish {
  /** Its port on the engine; undefined lets this program pick. */
  readonly port: number | undefined
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

/** When logs are exported, and a summary is shown. */
export type When = 'on-failure' | 'always' | 'never'

/** What is downloaded; `node` by hooks/find-node, before this program can run. */
const DOWNLOADS = ['kind', 'kubectl', 'buildx', 'node'] as const
export type DownloadName = (typeof DOWNLOADS)[number]

/** A builder as `docker buildx create --driver kubernetes` takes it. */
export interface BuilderOptions {
  /** The driver's options by name, for buildx to judge. */
  readonly driver: Readonly<Record<string, string>>
  /** The text of a buildkitd.toml. */
  readonly config: string | undefined
  /** Flags of buildkitd, as one line. */
  readonly flags: string | undefined
}

export interface Options {
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
  readonly images: readonly string[]
  /** Whether the engine may pull what it lacks. */
  readonly pull: 'missing' | 'never'
  readonly registry: RegistryWish | undefined
  /** Several of one registry are asked in this order. */
  readonly registryMirrors: readonly Mirror[]
  readonly builder: BuilderOptions | undefined
  readonly kubectlVersion: KubectlVersion
  /** Milliseconds; 0 does not wait. */
  readonly wait: number
  readonly dockerHost: string | undefined
  /** Milliseconds. */
  readonly dockerWait: number
  readonly host: string | undefined
  readonly network: string | undefined
  readonly kubeconfig: string | undefined
  /** Undefined for the host's own way. */
  readonly summary: When | undefined
  readonly logs: When
  readonly logsDir: string | undefined
  readonly keep: boolean
  /** Milliseconds. */
  readonly lifetime: number
  readonly downloadUrls: Readonly<Partial<Record<DownloadName, string>>>
}

/** Reads a file that an option names; undefined where there is none. @throws Problem where it cannot be read */
export type ReadFile = (path: string) => string | undefined

/** What parsing looks at beside the options. */
export interface ParseWorld {
  readonly readFile: ReadFile
  /** What is wrong with a Kubernetes version, such as 1.34 or 1.34.0; undefined where there is a node image for it. */
  readonly refuseVersion: (version: string) => string | undefined
}

/**
 * Parses what a host was given.
 *
 * @param given values by option name: strings (GitHub, a shell) or what the pipeline's YAML held (Buildkite)
 * @param world how files are read, and which Kubernetes versions there are
 * @throws Problem with one line for each option that is wrong, all at once
 */
export function parse(given: Readonly<Record<string, Given>>, world: ParseWorld): Options {
  const { option, refuse, finish } = readGiven(
    given,
    OPTIONS.map(known => known.name),
  )

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

  const options: Options = {
    name: option('name', clusterName, undefined),
    kindVersion: option('kind-version', kindVersion, { kind: 'pinned' }),
    nodeImage: image.kind === 'default' ? version : image,
    config,
    workers,
    cpus: option('cpus', value => quantity(value, 'such as 2 or 1500m'), undefined),
    memory: option('memory', memoryQuantity, undefined),
    ports: option('ports', ports, []),
    images: option('images', images, []),
    pull: option('pull', pull, 'missing'),
    registry: option('registry', registry, undefined),
    registryMirrors: option('registry-mirrors', value => mirrors(value, world.readFile), []),
    builder: option('builder', value => builder(value, world.readFile), undefined),
    kubectlVersion: option('kubectl-version', kubectlVersion, { kind: 'cluster' }),
    wait: option('wait', duration, 300_000),
    dockerHost: option('docker-host', dockerHost, undefined),
    dockerWait: option('docker-wait', duration, 60_000),
    host: option('host', hostName, undefined),
    network: option('network', networkName, undefined),
    kubeconfig: option('kubeconfig', text, undefined),
    summary: option('summary', when, undefined),
    logs: option('logs', when, 'on-failure'),
    logsDir: option('logs-dir', text, undefined),
    keep: option('keep', boolean, false),
    lifetime: option('lifetime', lifetime, LIFETIME),
    downloadUrls: option('download-url', downloadUrls, {}),
  }
  const registryPort = options.registry?.port
  if (
    options.ports.some(({ outer, protocol }) => protocol === 'TCP' && outer !== undefined && outer === registryPort)
  ) {
    refuse(`registry, ports: both ask for the engine's port ${registryPort}`)
  }
  return finish(options)
}

/** A cluster's name as people give it; `validName` makes it kind's. */
export function clusterName(value: Given): string {
  const name = typeof value === 'number' ? String(value) : text(value)
  if (!/[a-z0-9]/i.test(name)) {
    throw new Problem(`${show(value)} has nothing in it that a cluster name may have: letters and digits`)
  }
  return name
}

function when(value: Given): When {
  const word = text(value)
  if (word !== 'on-failure' && word !== 'always' && word !== 'never') {
    throw new Problem(`${show(value)} is not one of on-failure, always and never`)
  }
  return word
}

const HOUR = 3_600_000

/** How long a job counts as one that may live, where it says nothing else, in milliseconds. */
export const LIFETIME = 6 * HOUR

/** No timer, so it may be longer than a job: a kept cluster is there for people. */
function lifetime(value: Given): number {
  const ms = duration(value, 720 * HOUR)
  if (ms < 60_000) throw new Problem(`${show(value)} is over before the cluster is up; at least 1m`)
  return ms
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

/** The option `docker-host`, of other commands too. */
export function dockerHost(value: Given): string {
  const address = text(value)
  if (!/^(tcp:\/\/(\[[0-9a-f:.]+\]|[^/@:]+)(:\d{1,5})?\/?|unix:\/\/\/.+)$/i.test(address)) {
    throw new Problem(
      `${show(value)} is not an engine's address such as tcp://docker:2376 or unix:///var/run/docker.sock`,
    )
  }
  return address
}

function hostName(value: Given): string {
  const name = text(value)
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(name) && isIP(name) === 0) {
    throw new Problem(`${show(value)} is neither a host name nor an address; a port does not belong here`)
  }
  return name
}

/** Docker's names; its own three networks have no name resolution, which nodes need. */
function networkName(value: Given): string {
  const name = text(value)
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(name)) throw new Problem(`${show(value)} is not a network's name`)
  if (['bridge', 'host', 'none', 'default'].includes(name)) {
    throw new Problem(`${name} is Docker's own, where nodes do not find each other by name; name another one`)
  }
  return name
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

/** https://pkg.go.dev/github.com/distribution/reference: [host[:port]/]path[:tag][@digest]. */
const REFERENCE =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d+)?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/

function nodeImage(value: Given): NodeImage {
  const word = text(value)
  return isArchiveName(word) ? { kind: 'archive', path: word } : { kind: 'image', reference: reference(word) }
}

function reference(word: string): string {
  if (!REFERENCE.test(word))
    throw new Problem(`${show(word)} is not an image reference such as registry.example/app:ci`)
  return word
}

/** Whether a word is an archive of images by its name alone: by its ending, or because no reference begins like that. */
export function isArchiveName(word: string): boolean {
  return /\.(tar|tgz|tar\.gz|tar\.zst)$/.test(word) || /^\.{0,2}\//.test(word)
}

/** The option `images`, of load too. @throws Problem for what cannot be loaded */
export function images(value: Given): string[] {
  return list(value).map(word => {
    if (isArchiveName(word)) return word
    if (/^sha256:/.test(word)) {
      throw new Problem(
        `${show(word)} is an id, by which no pod can name an image; tag it (docker tag) and name the tag`,
      )
    }
    return reference(word)
  })
}

function pull(value: Given): 'missing' | 'never' {
  const word = text(value)
  if (word === 'missing' || word === 'never') return word
  throw new Problem(`${show(value)} is neither missing nor never`)
}

function mirrors(value: Given, readFile: ReadFile): Mirror[] {
  const read = list(value).map(line => readMirror(line, readFile))
  const key = ({ upstream, scheme, host, path }: Mirror): string => `${upstream}=${scheme}://${host}/${path}`
  const twice = read.map(key).find((one, index, all) => all.indexOf(one) !== index)
  if (twice !== undefined) throw new Problem(`${twice.replace(/\/$/, '')} is there twice`)
  return read
}

function registry(value: Given): RegistryWish | undefined {
  const isPort = typeof value === 'number' || (typeof value === 'string' && /^\s*\d+\s*$/.test(value))
  if (isPort) return { port: integer(value, 1, 65535) }
  try {
    return boolean(value) ? { port: undefined } : undefined
  } catch {
    throw new Problem(`${show(value)} is neither true nor false, nor a port such as 5001`)
  }
}

function builder(value: Given, readFile: ReadFile): BuilderOptions | undefined {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : value
  if (word === false || word === 'false') return undefined
  const given = word === true || word === 'true' ? {} : Object.fromEntries(pairs(value))
  const { 'buildkitd-config': config, 'buildkitd-flags': flags, ...driver } = given
  return { driver, config: config === undefined ? undefined : buildkitdConfig(config, readFile), flags }
}

/** Lines of `key=value`, which may have commas in them; on Buildkite also an array of such, or a map. */
function pairs(value: Given): [key: string, value: string][] {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    return Object.entries(value).map(([key, item]) => {
      if (typeof item === 'object' || item === undefined) {
        throw new Problem(`${key} is ${show(item)}; write it as one text, as buildx takes it, such as "a=b,c=d"`)
      }
      return [key, String(item)]
    })
  }
  const lines = (Array.isArray(value) ? value : [value]).flatMap(item => text(item).split('\n'))
  // Quotes around the whole are how buildx' own command line wants values with commas.
  const words = lines.map(line => line.trim().replace(/^"(.*)"$/, '$1')).filter(line => line !== '')
  return words.map(line => {
    const match = /^([^=\s]+)=(.*)$/.exec(line)
    if (!match) throw new Problem(`${show(line)} is neither true nor false, nor a driver option such as replicas=3`)
    return [match[1] ?? '', (match[2] ?? '').trim()]
  })
}

function buildkitdConfig(given: string, readFile: ReadFile): string {
  // A path has no line break and no "key = value" in it.
  if (/[\n=]/.test(given)) return given
  const content = readFile(given)
  if (content === undefined) throw new Problem(`buildkitd-config: ${show(given)} is no file here, and no TOML either`)
  return content
}

function downloadUrls(value: Given): Partial<Record<DownloadName, string>> {
  const urls: Partial<Record<DownloadName, string>> = {}
  for (const word of list(value)) {
    const [, given, url] = /^(\w+)=(https?:\/\/\S+)$/.exec(word) ?? []
    const name = DOWNLOADS.find(known => known === given)
    if (name === undefined || url === undefined) {
      throw new Problem(`${show(word)} is not NAME=URL; names are ${DOWNLOADS.join(', ')}`)
    }
    if (!/\{version\}/.test(word)) throw new Problem(`${show(word)} does not say where the {version} goes`)
    urls[name] = url
  }
  return urls
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
