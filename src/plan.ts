/**
 * The plan: everything that will be made, by name. It is saved before the first act, so that post can remove what is
 * there whatever happened in between. Pure, a leaf.
 */
import { createHash } from 'node:crypto'
import type { Identity } from './host/host.ts'
import type { Options, When } from './options.ts'
import type { Mirror } from './registry-mirrors.ts'

/** The engine as found: how to talk to it and what it said of itself. */
export interface Engine {
  /** Its address as DOCKER_HOST names it. */
  readonly address: string
  /** The docker CLI's variables for it, a whole set: an absent one is unset. */
  readonly env: Readonly<Partial<Record<EngineVariable, string>>>
  /** How it was found, for the log: `DOCKER_HOST`, `the name docker`. */
  readonly source: string
  /** True where later commands of the job find it only if its variables are exported. */
  readonly exported: boolean
  /** The name or address in a tcp address; undefined for a socket. */
  readonly hostname: string | undefined
  /** What the hostname resolves to, IPv4 first; empty for a socket. */
  readonly addresses: readonly string[]
  /** NO_PROXY in both spellings with the engine in it, where the job has a proxy; empty elsewhere. */
  readonly aroundProxy: Readonly<Record<string, string>>
  readonly version: string
  /** As Go names it: amd64, arm64. */
  readonly architecture: string
  readonly cpus: number
  /** Bytes. */
  readonly memory: number
  readonly cgroupVersion: string
  readonly storageDriver: string
  /** URLs of the mirrors of Docker Hub that it pulls from. */
  readonly registryMirrors: readonly string[]
  /** By how many milliseconds its clock was ahead of this machine's when it answered: expiries are told by its clock. */
  readonly clockAhead: number
}

export const ENGINE_VARIABLES = [
  'DOCKER_HOST',
  'DOCKER_TLS_VERIFY',
  'DOCKER_TLS',
  'DOCKER_CERT_PATH',
  'DOCKER_CONTEXT',
] as const
export type EngineVariable = (typeof ENGINE_VARIABLES)[number]

/** The builder, and what making it leaves in buildx' configuration. */
export interface BuilderPlan {
  /** Unique for each use: a folder of configuration may outlive many of them. */
  readonly name: string
  /** The buildx that was fetched, and the link by which the docker CLI finds it; undefined where it has the plugin. */
  readonly fetched: { readonly program: string; readonly link: string } | undefined
  readonly configFolder: string
  /** What of that folder and of the link's was not there before, a folder before what is in it. */
  readonly missing: readonly string[]
}

export interface Plan {
  readonly version: 1
  readonly cluster: string
  readonly owner: string
  readonly job: string
  /** Random: tells this use from any other of the same name. */
  readonly use: string
  /** When anyone may remove the cluster: seconds since 1970 by the engine's clock, as it stands in the labels. */
  readonly expiry: number
  readonly engine: Engine
  /** An empty volume with the labels: made first, removed last. */
  readonly record: string
  readonly network: string
  /** True where the user chose the network: one that was there is not ours to remove. */
  readonly networkIsTheUsers: boolean
  /** The step's own container, where this engine runs it: it may join the cluster's network, and leaves it in post. */
  readonly ownContainer: string | undefined
  readonly labels: Readonly<Record<string, string>>
  /** The node containers, the first control plane first. */
  readonly nodes: readonly string[]
  /** The registry's container, which is also its name on the network; undefined where none was asked for. */
  readonly registry: string | undefined
  readonly nodeImage: string
  /** The mirrors that were asked for, with their passwords: like all of the plan they are for this user alone. */
  readonly mirrors: readonly Mirror[]
  /** Whether the engine may pull what it lacks of the images to load, now and later in the job. */
  readonly pull: Options['pull']
  /** This use's folder, mode 0700; it has the use's name. All paths below are in it unless the user said otherwise. */
  readonly folder: string
  readonly kubeconfig: string
  readonly internalKubeconfig: string
  readonly logs: When
  /** This cluster's own folder for its logs. */
  readonly logsDir: string
  readonly keep: boolean
  readonly builder: BuilderPlan | undefined
}

/**
 * The name of a use, and of its folder. A given cluster name alone would make two uses of one name share a folder, of which
 * one has yet to hear that the name is taken; a derived one is nobody else's.
 */
function useName(cluster: string, given: string | undefined, unique: string): string {
  return given === undefined ? cluster : `${cluster}.${unique.slice(0, 8)}`
}

/** The cluster's name in the name of a use: there is no dot in it. */
export function clusterOfUse(use: string): string {
  return use.split('.')[0] ?? use
}

/** The labels of everything that can carry labels. Whoever finds the record can remove the cluster with nothing else. */
export const LABEL = {
  cluster: 'kind-in-dind.cluster',
  job: 'kind-in-dind.job',
  use: 'kind-in-dind.use',
  owner: 'kind-in-dind.owner',
  /** Seconds since 1970 by the engine's clock, as `expiry`. */
  created: 'kind-in-dind.created',
  expiry: 'kind-in-dind.expiry',
  /** `true` where the cluster stays after its job, until its expiry. */
  kept: 'kind-in-dind.kept',
  /** The names of nodes and registry without the cluster's, between blanks: the engine may list one only when it is made. */
  containers: 'kind-in-dind.containers',
  /** The network's name. */
  network: 'kind-in-dind.network',
  /** On nothing but a mark: the network that a post may be removing. */
  leaving: 'kind-in-dind.leaving',
} as const

/** kind labels its nodes with the cluster's name under this key (kind's pkg/cluster/constants). */
export const KIND_CLUSTER_LABEL = 'io.x-k8s.kind.cluster'

/** The name of a cluster's record, and of its network unless the user named another. */
export function recordName(cluster: string): string {
  return `kind-in-dind-${cluster}`
}

/** kind's limit is 49 with the longest node suffix in a 63 character host name; 40 leaves room for what is named after it. */
const NAME_LENGTH = 40

/**
 * Plans one use.
 *
 * @param facts.unique random lower-case hexadecimal, at least 8 characters: two plans never share it
 * @param facts.now milliseconds since 1970
 * @param facts.folder the folder of the job's uses
 * @param facts.logsFolder where logs go that no option gives a place; undefined for this use's own folder
 * @param facts.nodeImage the node image's reference
 * @param facts.builder what is known of the builder but for its name; undefined where none is asked for
 * @param facts.ownContainer the step's own container on this engine, as `findOwnContainer` finds it
 */
export function makePlan(
  options: Options,
  engine: Engine,
  facts: {
    readonly identity: Identity
    readonly unique: string
    readonly now: number
    readonly folder: string
    readonly logsFolder: string | undefined
    readonly nodeImage: string
    readonly ownContainer: string | undefined
    readonly builder: Omit<BuilderPlan, 'name'> | undefined
  },
): Plan {
  const given = options.name ?? options.config?.name
  const cluster = given === undefined ? derivedName(facts.identity.label, facts.unique) : validName(given)
  const use = useName(cluster, given, facts.unique)
  const folder = `${facts.folder}/${use}`
  const now = facts.now + engine.clockAhead
  const expiry = Math.floor((now + options.lifetime) / 1000)
  const thing = recordName(cluster)
  const nodes = nodeNames(cluster, nodeRoles(options))
  const registry = options.registry === undefined ? undefined : `${cluster}-registry`
  return {
    version: 1,
    cluster,
    owner: facts.identity.owner,
    job: facts.identity.job,
    use: facts.unique,
    expiry,
    engine,
    record: thing,
    network: options.network ?? thing,
    networkIsTheUsers: options.network !== undefined,
    ownContainer: facts.ownContainer,
    labels: {
      [LABEL.cluster]: cluster,
      [LABEL.job]: facts.identity.job,
      [LABEL.use]: facts.unique,
      [LABEL.owner]: facts.identity.owner,
      [LABEL.created]: String(Math.floor(now / 1000)),
      [LABEL.expiry]: String(expiry),
      ...(options.keep ? { [LABEL.kept]: 'true' } : {}),
      [LABEL.containers]: [...nodes, ...(registry === undefined ? [] : [registry])]
        .map(name => name.slice(cluster.length + 1))
        .join(' '),
      [LABEL.network]: options.network ?? thing,
    },
    nodes,
    registry,
    nodeImage: facts.nodeImage,
    mirrors: options.registryMirrors,
    pull: options.pull,
    folder,
    kubeconfig: options.kubeconfig ?? `${folder}/kubeconfig`,
    internalKubeconfig: `${folder}/kubeconfig-internal`,
    logs: options.logs,
    logsDir: `${options.logsDir ?? facts.logsFolder ?? `${folder}/logs`}/${cluster}`,
    keep: options.keep,
    builder: facts.builder && { name: builderName({ cluster, use: facts.unique }), ...facts.builder },
  }
}

/**
 * What the builder of a use is called: buildx wants a letter first and is content with no dot.
 *
 * @param given.use as its labels name it
 */
export function builderName({ cluster, use }: { readonly cluster: string; readonly use: string }): string {
  const own = `-${use.slice(0, 8)}`
  return `kind-in-dind-${cluster.endsWith(own) ? cluster : `${cluster}${own}`}`
}

/** The roles of the nodes in order, from the config or from `workers`. */
export function nodeRoles(options: Pick<Options, 'config' | 'workers'>): readonly string[] {
  const listed = options.config?.nodes
  if (listed && listed.length > 0) return listed.map(node => node.role ?? 'control-plane')
  return ['control-plane', ...Array.from({ length: options.workers }, () => 'worker')]
}

/** The container names that kind gives nodes: the role, and from the second of a role on its number. */
function nodeNames(cluster: string, roles: readonly string[]): string[] {
  const count = new Map<string, number>()
  const nodes = roles.map(role => {
    const n = (count.get(role) ?? 0) + 1
    count.set(role, n)
    return { role, name: `${cluster}-${role}${n === 1 ? '' : n}` }
  })
  const isControlPlane = (node: { readonly role: string }): boolean => node.role === 'control-plane'
  return [...nodes.filter(isControlPlane), ...nodes.filter(node => !isControlPlane(node))].map(node => node.name)
}

/** A name nobody else has: a readable word and something random. */
function derivedName(label: string, unique: string): string {
  const word = validCharacters(label)
    .slice(0, 24)
    .replace(/[.-]+$/, '')
  return `${word || 'kind'}-${unique.slice(0, 8)}`
}

/** A given name as kind takes it; where it had to change, a hash of what was given keeps two such names apart. */
export function validName(given: string): string {
  const valid = validCharacters(given)
  if (valid === given && given.length <= NAME_LENGTH) return given
  const hash = createHash('sha256').update(given).digest('hex').slice(0, 6)
  return `${valid.slice(0, NAME_LENGTH - 7).replace(/[.-]+$/, '')}-${hash}`
}

/** kind's ^[a-z0-9.-]+$, held to what is also a host name: no dots, no dash at an end. */
function validCharacters(text: string): string {
  return text
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
}
