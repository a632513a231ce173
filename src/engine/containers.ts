/** The docker CLI's arguments for containers: nodes, the registry, and those that look or help for a moment. */
import type { PortMapping } from '../options.ts'
import { KIND_CLUSTER_LABEL, type Plan } from '../plan.ts'
import { labelFlags } from './records.ts'

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

/** Prints the labels of a container as JSON; fails where there is none of that name. */
export const labelsOf = (name: string): string[] => ['container', 'inspect', '--format={{json .Config.Labels}}', name]

/** Prints the names of all containers, a line each. */
export const containerNames: readonly string[] = ['ps', '--all', '--format={{.Names}}']

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

/** Prints a node's published ports and networks as JSON, as GET /containers/id/json has them in NetworkSettings. */
export const inspectNode = (node: string): string[] => [
  'container',
  'inspect',
  '--format={"ports":{{json .NetworkSettings.Ports}},"networks":{{json .NetworkSettings.Networks}}}',
  node,
]

/** Prints `name|ports` of each running container. */
export const publishedByContainers: readonly string[] = ['ps', '--format={{.Names}}|{{.Ports}}']

/** What a probe is for: what a node of this plan would ask of the engine. */
export interface Wish {
  /** The cluster's: the probe has them too, so that a removal finds one that was interrupted. */
  readonly labels: Readonly<Record<string, string>>
  readonly image: string
  readonly listenAddress: string
  readonly ports: readonly PortMapping[]
  /** Absolute paths on the engine's machine that nodes will mount. */
  readonly mounts: readonly string[]
  /** The registry's port on the engine, where the user chose one. */
  readonly registryPort: number | undefined
}

/**
 * Runs the node image for a moment as a node is run: privileged, publishing and mounting what the node will. Prints the inotify limits
 * and the free space. The port inside does not matter, nothing listens.
 */
export const probeEngine = (wish: Wish): string[] => [
  'run',
  '--rm',
  '--privileged',
  // An engine with userns-remap refuses privileged containers without it; kind gives it to nodes.
  '--userns=host',
  ...labelFlags(wish.labels),
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

/** Prints `df -kP /` of a container of an image, which is the engine's disk. */
export const diskOfEngine = (image: string, labels: Readonly<Record<string, string>>): string[] => [
  'run',
  '--rm',
  '--pull=never',
  '--network=none',
  ...labelFlags(labels),
  '--entrypoint=df',
  image,
  '-kP',
  '/',
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
