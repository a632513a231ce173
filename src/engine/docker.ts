/** The docker CLI: its variables for one engine, and the arguments of each command that we run. */

import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { CommandFailed, CommandMissing, type Result, type Runner, type Running, type RunOptions } from '../lib/run.ts'
import type { PortMapping } from '../options.ts'
import { ENGINE_VARIABLES, type Engine, KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'

/** How long a command may take that does not say otherwise, in milliseconds: an engine that never answers must not hold a job. */
const LIMIT = 120_000

/** The engine had not done in time what it was asked for. */
export class EngineLate extends Problem {
  constructor({ argv, limit }: CommandFailed) {
    const flag = argv.findIndex(word => word.startsWith('-'))
    const command = argv.slice(0, flag === -1 ? 3 : Math.min(flag, 3)).join(' ')
    super(`the engine did not finish ${command} within ${formatDuration(limit)}; look at its log and its load`)
  }
}

/** The docker CLI at one engine. Takes arguments without the leading `docker`. */
export interface Docker {
  run(args: readonly string[], options?: RunOptions): Promise<Result>
  try(args: readonly string[], options?: RunOptions): Promise<Result>
  /** @param options.timeout milliseconds, for all that goes through its pipes */
  start(args: readonly string[], options: { readonly timeout: number }): Running
}

/** The variables that make the docker CLI, and what calls it, talk to this engine and to no other. */
export function engineEnv(engine: Pick<Engine, 'env' | 'aroundProxy'>): Readonly<Record<string, string | undefined>> {
  return { ...Object.fromEntries(ENGINE_VARIABLES.map(name => [name, engine.env[name]])), ...engine.aroundProxy }
}

/** @throws Problem from each call where there is no docker CLI. */
export function dockerAt(engine: Pick<Engine, 'env' | 'aroundProxy'>, runner: Runner): Docker {
  const env = engineEnv(engine)
  const missing = (error: unknown): never => {
    if (error instanceof CommandMissing) throw noDockerCli
    if (error instanceof CommandFailed) agree(error.result)
    if (error instanceof CommandFailed && error.endedBy === 'timeout') throw new EngineLate(error)
    throw error
  }
  return {
    run: (args, options) => runner.run(['docker', ...args], { timeout: LIMIT, ...options, env }).catch(missing),
    try: (args, options) =>
      runner
        .try(['docker', ...args], { timeout: LIMIT, ...options, env })
        .then(agree)
        .catch(missing),
    start: (args, { timeout }) => runner.start(['docker', ...args], { timeout, env }),
  }
}

/**
 * Passes a result on, unless the CLI and the engine have no API version in common.
 *
 * @throws Problem with both versions
 */
function agree(result: Result): Result {
  const apart = /client version (\S+) is too (old|new)\. (?:Minimum|Maximum) supported API version is ([\d.]+)/.exec(
    result.stderr,
  )
  if (result.code === 0 || apart === null) return result
  const [, client, which, engine] = apart
  throw new Problem(
    `the docker CLI speaks API version ${client} and the engine ${which === 'old' ? 'none below' : 'none above'} ${engine}; unset DOCKER_API_VERSION or set it to ${engine}, or install a docker CLI that fits`,
  )
}

const noDockerCli = new Problem(
  'there is no docker CLI on PATH, and Docker publishes no checksums to fetch it by; install it in the step (package docker-cli or docker-ce-cli, or copy /usr/local/bin/docker from the image docker:cli)',
)

const labelFlags = (labels: Readonly<Record<string, string>>): string[] =>
  Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`])

export const createRecord = (plan: Plan): string[] => ['volume', 'create', ...labelFlags(plan.labels), plan.record]

/**
 * @param given.mtu bytes, as the engine's default network has it; undefined leaves it to the engine
 * @param given.ipv6 an IPv6 subnet; undefined makes a network of IPv4 alone
 */
export const createNetwork = (
  plan: Plan,
  given: { readonly mtu: string | undefined; readonly ipv6: string | undefined },
): string[] => [
  'network',
  'create',
  '--driver=bridge',
  '--opt=com.docker.network.bridge.enable_ip_masquerade=true',
  ...(given.mtu === undefined ? [] : [`--opt=com.docker.network.driver.mtu=${given.mtu}`]),
  ...(given.ipv6 === undefined ? [] : ['--ipv6', `--subnet=${given.ipv6}`]),
  ...labelFlags(plan.labels),
  plan.network,
]

/** Fails where the engine has no network of that name. */
export const networkExists = (name: string): string[] => ['network', 'inspect', '--format={{.Id}}', name]

/** Prints the subnets of a network, a line each. */
export const networkSubnets = (name: string): string[] => [
  'network',
  'inspect',
  '--format={{range .IPAM.Config}}{{println .Subnet}}{{end}}',
  name,
]

/** Prints the ids of the networks of that name that any use made. */
export const madeNetworks = (name: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=name=^${name}$`,
  `--filter=label=${LABEL.cluster}`,
]

/** Prints the names of the records of clusters that are on a network, or will be. */
export const recordsOn = (network: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.cluster}`,
  `--filter=label=${LABEL.network}=${network}`,
]

/** Marks a network as one that may go at any moment: with an empty volume, which all that use the engine can see. */
export const createMark = (mark: string, network: string): string[] => [
  'volume',
  'create',
  ...labelFlags({ [LABEL.leaving]: network }),
  mark,
]

/** Prints the names of a network's marks. */
export const marksOn = (network: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.leaving}=${network}`,
]

/** Prints the MTU that the engine's own network was given; nothing where it was given none. */
export const defaultMtu: readonly string[] = [
  'network',
  'inspect',
  'bridge',
  '--format={{index .Options "com.docker.network.driver.mtu"}}',
]

/** Prints the name of a use's record; nothing where it is gone. */
export const recordOf = ({ record, use }: Pick<Plan, 'record' | 'use'>): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=name=^${record}$`,
  `--filter=label=${LABEL.use}=${use}`,
]

/** Prints the labels of a cluster's record as JSON; fails where there is no such record. */
export const recordLabels = (record: string): string[] => ['volume', 'inspect', '--format={{json .Labels}}', record]

/** Prints the ids of a cluster's node containers: kind cannot put our labels on them, they carry its own. */
export const clusterContainers = (cluster: string): string[] => containersLabelled(KIND_CLUSTER_LABEL, cluster)

/** Prints the ids of the containers that this program itself ran for a cluster: its registry. */
export const clusterServices = (cluster: string): string[] => containersLabelled(LABEL.cluster, cluster)

const containersLabelled = (key: string, value: string): string[] => [
  'ps',
  '--all',
  '--quiet',
  '--no-trunc',
  `--filter=label=${key}=${value}`,
]

/** Prints the id of the network of that name. */
export const networkNamed = (name: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=name=^${name}$`,
]

/** Prints the ids of what carries the label of one use: of its networks, or of the containers that this program itself ran. */
export const networksOf = (use: string): string[] => ['network', 'ls', '--quiet', `--filter=label=${LABEL.use}=${use}`]
export const servicesOf = (use: string): string[] => containersLabelled(LABEL.use, use)

/** Prints the names of the volumes that carry a cluster's label, its record among them. */
export const clusterVolumes = (cluster: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.cluster}=${cluster}`,
]

/** A line of JSON of each thing, with some of its fields and all labels of ours. */
const jsonLine = (fields: Readonly<Record<string, string>>): string => {
  const labels = Object.fromEntries(Object.values(LABEL).map(key => [key, `(.Label "${key}")`]))
  const object = (of: Readonly<Record<string, string>>): string =>
    Object.entries(of)
      .map(([key, value]) => `"${key}": {{json ${value}}}`)
      .join(', ')
  return `--format={ ${object(fields)}, "labels": { ${object(labels)} } }`
}

/** Prints a line of JSON of every container on the engine; an absent label is an empty one. */
export const surveyContainers: readonly string[] = [
  'ps',
  '--all',
  '--no-trunc',
  jsonLine({
    id: '.ID',
    name: '.Names',
    state: '.State',
    networks: '.Networks',
    kind: `(.Label "${KIND_CLUSTER_LABEL}")`,
  }),
]

/** Prints a line of JSON of every network of ours. */
export const surveyNetworks: readonly string[] = [
  'network',
  'ls',
  '--no-trunc',
  `--filter=label=${LABEL.cluster}`,
  jsonLine({ id: '.ID', name: '.Name' }),
]

/** Prints a line of JSON of every volume of ours. */
export const surveyVolumes: readonly string[] = [
  'volume',
  'ls',
  `--filter=label=${LABEL.cluster}`,
  jsonLine({ id: '.Name', name: '.Name' }),
]

/** Prints the client's version, also where no engine answers. */
export const clientVersion: readonly string[] = ['version', '--format={{.Client.Version}}']

/** Prints the ids of the networks that carry a cluster's label. */
export const clusterNetworks = (cluster: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=label=${LABEL.cluster}=${cluster}`,
]

/** Prints the ids of all containers on the engine. */
export const allContainers: readonly string[] = ['ps', '--all', '--quiet', '--no-trunc']

/** Takes a container's name with an empty container that never runs; `any` of the engine's images will do. */
export const takeName = (name: string, cluster: string, any: string): string[] => [
  'create',
  '--pull=never',
  '--network=none',
  `--label=${KIND_CLUSTER_LABEL}=${cluster}`,
  `--name=${name}`,
  any,
  // An image may have no command of its own, and then there is no container of it without one.
  'none',
]

/** Prints the ids of the engine's images. */
export const imageIds: readonly string[] = ['image', 'ls', '--quiet', '--no-trunc']

/** Prints the id of a container's image. */
export const containerImage = (id: string): string[] => ['container', 'inspect', '--format={{.Image}}', id]

/**
 * Lets every frozen process below some containers run, on an engine with the first version of cgroups.
 *
 * @param image one with /bin/sh, mount and find
 * @param ids whole ones, as cgroups have them in their names
 */
export const thawContainers = (image: string, ids: readonly string[]): string[] => [
  'run',
  '--rm',
  '--privileged',
  '--userns=host',
  '--cgroupns=host',
  '--network=none',
  '--entrypoint=/bin/sh',
  image,
  '-c',
  // Docker shows a container its own part of the hierarchy only, so it is mounted once more.
  'mkdir /tmp/freezer && mount -t cgroup -o freezer none /tmp/freezer && for id; do find /tmp/freezer -path "*/$id/*" -name freezer.state | while read -r state; do echo THAWED >"$state"; done; done',
  'sh',
  ...ids,
]

export const removeContainers = (ids: readonly string[]): string[] => ['rm', '--force', '--volumes', ...ids]
export const removeNetworks = (ids: readonly string[]): string[] => ['network', 'rm', ...ids]
export const removeVolumes = (names: readonly string[]): string[] => ['volume', 'rm', '--force', ...names]

/** Prints a node's published ports and networks as JSON, as GET /containers/id/json has them in NetworkSettings. */
export const inspectNode = (node: string): string[] => [
  'container',
  'inspect',
  '--format={"ports":{{json .NetworkSettings.Ports}},"networks":{{json .NetworkSettings.Networks}}}',
  node,
]

/** Prints a line of JSON for each image that the engine has, in the order asked for; fails, naming it, where it lacks one. */
export const inspectImages = (references: readonly string[]): string[] => [
  'image',
  'inspect',
  '--format={"tags":{{json .RepoTags}},"os":{{json .Os}},"architecture":{{json .Architecture}}}',
  '--',
  ...references,
]

/** Prints the architecture that an image is for; fails where the engine lacks it. */
export const imageArchitecture = (reference: string): string[] => [
  'image',
  'inspect',
  '--format={{.Architecture}}',
  '--',
  reference,
]

/** Gives an image one more name. */
export const tagImage = (name: string, other: string): string[] => ['tag', '--', name, other]
/** Takes a name from an image that has another. */
export const untagImage = (name: string): string[] => ['rmi', '--', name]

export const pull = (reference: string): string[] => ['pull', '--quiet', '--', reference]
export const saveImages = (references: readonly string[]): string[] => ['save', '--', ...references]

/** Prints an image's id; fails where the engine lacks it. */
export const imageId = (reference: string): string[] => ['image', 'inspect', '--format={{.Id}}', '--', reference]

/** Reads an archive, packed or not, into the engine. */
export const loadArchive = (path: string): string[] => ['load', '--quiet', `--input=${path}`]

/**
 * Prints a line of JSON for each image, in the order of the references: its id, its bytes, the digests of its unpacked layers, and
 * where they are unpacked: something in the classic store, null in containerd's.
 */
export const describeImages = (references: readonly string[]): string[] => [
  'image',
  'inspect',
  '--format={"id":{{json .Id}},"size":{{json .Size}},"layers":{{json .RootFS.Layers}},"unpacked":{{if .GraphDriver}}{{json .GraphDriver.Data}}{{else}}null{{end}}}',
  '--',
  ...references,
]

/**
 * Reads an image archive from stdin into a node's containerd, where the kubelet looks (namespace k8s.io). One import waits
 * for another in the node, whoever began it, and ends there too when it takes too long: a killed docker CLI ends nothing.
 * With --digests the kubelet also sees by which manifest an image came.
 *
 * @param limit seconds
 */
export const importCommand = (snapshotter: string, limit: number): string[] => [
  'flock',
  `--timeout=${limit}`,
  '/run/kind-in-dind-import.lock',
  'timeout',
  '--kill-after=5',
  `${limit}`,
  'ctr',
  '--namespace=k8s.io',
  'images',
  'import',
  '--digests',
  `--snapshotter=${snapshotter}`,
  '-',
]

/** Does so in a node. */
export const importImages = (node: string, snapshotter: string, limit: number): string[] => [
  'exec',
  '--interactive',
  node,
  ...importCommand(snapshotter, limit),
]

/** Prints the ids that the containers' first processes have on the engine, a line each. */
export const pidsOf = (containers: readonly string[]): string[] => ['inspect', '--format={{.State.Pid}}', ...containers]

/** Runs a script of bash beside the engine: with its processes, and its socket as /engine.sock. */
export const runBeside = (given: {
  readonly name: string
  readonly image: string
  readonly labels: Readonly<Record<string, string>>
  readonly socket: string
  readonly script: string
  readonly args: readonly string[]
}): string[] => [
  'run',
  '--rm',
  '--pull=never',
  `--name=${given.name}`,
  ...labelFlags(given.labels),
  '--privileged',
  // As for nodes, where the engine has userns-remap.
  '--userns=host',
  '--pid=host',
  '--network=none',
  // As --mount and not as --volume, which would make an empty folder where there is none.
  `--mount=type=bind,"source=${given.socket.replaceAll('"', '""')}",target=/engine.sock`,
  '--entrypoint=bash',
  given.image,
  '-c',
  given.script,
  'beside',
  ...given.args,
]

/** Prints `name|ports` of each running container. */
export const publishedByContainers: readonly string[] = ['ps', '--format={{.Names}}|{{.Ports}}']

/**
 * Runs the node image for a moment as a node is run: privileged, publishing and mounting what the node will. Prints the inotify limits
 * and the free space. The port inside does not matter, nothing listens.
 */
export const probeEngine = (wish: {
  readonly cluster: string
  readonly image: string
  readonly listenAddress: string
  readonly ports: readonly PortMapping[]
  readonly mounts: readonly string[]
  readonly registryPort: number | undefined
}): string[] => [
  'run',
  '--rm',
  '--privileged',
  // An engine with userns-remap refuses privileged containers without it; kind gives it to nodes.
  '--userns=host',
  `--label=${KIND_CLUSTER_LABEL}=${wish.cluster}`,
  '--entrypoint=/bin/sh',
  `--publish=${bracketed(wish.listenAddress)}::6443`,
  ...wish.ports
    .filter(port => port.outer !== undefined)
    .map(
      ({ address, outer, node, protocol }) =>
        `--publish=${bracketed(address ?? wish.listenAddress)}:${outer}:${node}/${protocol.toLowerCase()}`,
    ),
  ...(wish.registryPort === undefined ? [] : publishRegistry(wish.listenAddress, wish.registryPort)),
  // As --mount and not as --volume, which would make an empty folder where there is none.
  ...wish.mounts.map(
    (path, index) => `--mount=type=bind,"source=${path.replaceAll('"', '""')}",target=/mnt/${index},readonly`,
  ),
  wish.image,
  '-c',
  'cat /proc/sys/fs/inotify/max_user_instances /proc/sys/fs/inotify/max_user_watches && df -kP /',
]

/** The registry's port in its container (the image's own config). */
export const REGISTRY_PORT = 5000

/** Publishes the registry where the step reaches it, and on the engine's loopback, for which Docker asks no TLS. */
function publishRegistry(listenAddress: string, port: number): string[] {
  const addresses = listenAddress === '0.0.0.0' ? [listenAddress] : [...new Set(['127.0.0.1', listenAddress])]
  return addresses.map(address => `--publish=${bracketed(address)}:${port}:${REGISTRY_PORT}`)
}

/**
 * Runs the registry on the cluster's network. Its volume has no name and goes with the container.
 *
 * @param given.port the engine's
 */
export const runRegistry = (
  plan: Plan,
  given: { readonly name: string; readonly image: string; readonly listenAddress: string; readonly port: number },
): string[] => [
  'run',
  '--detach',
  '--pull=never',
  `--name=${given.name}`,
  `--network=${plan.network}`,
  '--volume=/var/lib/registry',
  ...labelFlags(plan.labels),
  ...publishRegistry(given.listenAddress, given.port),
  // Release 3 would send traces to a collector that is not there, and log each failure.
  '--env=OTEL_TRACES_EXPORTER=none',
  given.image,
]

/** Prints the last lines that a container logged. */
export const lastLog = (container: string): string[] => ['logs', '--tail=5', container]

/**
 * Writes files in a node, for root alone: on stdin a line for each, its path and its content in base64. So that nothing of
 * it is seen in a list of processes.
 */
export const writeFiles = (node: string): string[] => [
  'exec',
  '--interactive',
  node,
  'sh',
  '-c',
  'umask 077 && while read -r path content; do mkdir -p "$(dirname "$path")" && echo "$content" | base64 -d >"$path" || exit 1; done',
]

const bracketed = (address: string): string => (address.includes(':') ? `[${address}]` : address)

/** Prints a container's id and network mode as JSON; fails where the engine does not know it. */
export const inspectContainer = (id: string): string[] => [
  'container',
  'inspect',
  '--format={"id":{{json .Id}},"mode":{{json .HostConfig.NetworkMode}}}',
  id,
]

/** Prints the ids of the containers on a network. */
export const networkMembers = (network: string): string[] => [
  'network',
  'inspect',
  '--format={{range $id, $_ := .Containers}}{{println $id}}{{end}}',
  network,
]

export const connectNetwork = (network: string, container: string): string[] => [
  'network',
  'connect',
  network,
  container,
]
export const disconnectNetwork = (network: string, container: string): string[] => [
  'network',
  'disconnect',
  '--force',
  network,
  container,
]

/** Prints what a node's container printed last: its init's messages. */
export const containerLog = (node: string): string[] => ['logs', '--timestamps', '--tail=3000', node]

/** Prints all that the engine knows of a node's container, as JSON. */
export const describeNode = (node: string): string[] => ['container', 'inspect', node]

/** Prints how often systemd has started a node's kubelet again. */
export const kubeletRestarts = (node: string): string[] => [
  'exec',
  node,
  'systemctl',
  'show',
  'kubelet',
  '--property=NRestarts',
  '--value',
]

/** Runs the shell script that comes on stdin in a node; its words are what the script gets. */
export const runInNode = (node: string, words: readonly string[]): string[] => [
  'exec',
  '--interactive',
  node,
  'sh',
  '-s',
  '--',
  ...words,
]

/** Prints `name|status|exit code|true where it ran out of memory` of each of a cluster's nodes. */
export const nodeStates = (nodes: readonly string[]): string[] => [
  'container',
  'inspect',
  '--format={{.Name}}|{{.State.Status}}|{{.State.ExitCode}}|{{.State.OOMKilled}}',
  ...nodes,
]

/**
 * Holds containers to CPUs and memory, swap included.
 *
 * @param limits CPUs and bytes; an absent one is left as it is
 */
export const limitContainers = (
  names: readonly string[],
  limits: { readonly cpus?: number; readonly memory?: number },
): string[] => [
  'update',
  ...(limits.cpus === undefined ? [] : [`--cpus=${limits.cpus}`]),
  ...(limits.memory === undefined ? [] : [`--memory=${limits.memory}`, `--memory-swap=${limits.memory}`]),
  ...names,
]
