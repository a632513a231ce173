/** The docker CLI: its variables for one engine, and the arguments of each command that we run. */

import { Problem } from '../lib/problem.ts'
import { CommandMissing, type Result, type Runner, type Running, type RunOptions } from '../lib/run.ts'
import { ENGINE_VARIABLES, type Engine, KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'

/** The docker CLI at one engine. Takes arguments without the leading `docker`. */
export interface Docker {
  run(args: readonly string[], options?: RunOptions): Promise<Result>
  try(args: readonly string[], options?: RunOptions): Promise<Result>
  start(args: readonly string[]): Running
}

/** The variables that make the docker CLI, and what calls it, talk to this engine and to no other. */
export function engineEnv(engine: Pick<Engine, 'env'>): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(ENGINE_VARIABLES.map(name => [name, engine.env[name]]))
}

/** @throws Problem from each call where there is no docker CLI. */
export function dockerAt(engine: Pick<Engine, 'env'>, runner: Runner): Docker {
  const env = engineEnv(engine)
  const missing = (error: unknown): never => {
    if (error instanceof CommandMissing) throw noDockerCli
    throw error
  }
  return {
    run: (args, options) => runner.run(['docker', ...args], { ...options, env }).catch(missing),
    try: (args, options) => runner.try(['docker', ...args], { ...options, env }).catch(missing),
    start: args => runner.start(['docker', ...args], { env }),
  }
}

const noDockerCli = new Problem(
  'there is no docker CLI on PATH, and Docker publishes no checksums to fetch it by; install it in the step (package docker-cli or docker-ce-cli, or copy /usr/local/bin/docker from the image docker:cli)',
)

const labelFlags = (labels: Readonly<Record<string, string>>): string[] =>
  Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`])

export const createRecord = (plan: Plan): string[] => ['volume', 'create', ...labelFlags(plan.labels), plan.record]

/** @param mtu bytes, as the engine's default network has it; undefined leaves it to the engine */
export const createNetwork = (plan: Plan, mtu: string | undefined): string[] => [
  'network',
  'create',
  '--driver=bridge',
  '--opt=com.docker.network.bridge.enable_ip_masquerade=true',
  ...(mtu === undefined ? [] : [`--opt=com.docker.network.driver.mtu=${mtu}`]),
  ...labelFlags(plan.labels),
  plan.network,
]

/** Prints the MTU that the engine's own network was given; nothing where it was given none. */
export const defaultMtu: readonly string[] = [
  'network',
  'inspect',
  'bridge',
  '--format={{index .Options "com.docker.network.driver.mtu"}}',
]

/** Prints the labels of a cluster's record as JSON; fails where there is no such record. */
export const recordLabels = (record: string): string[] => ['volume', 'inspect', '--format={{json .Labels}}', record]

/** Prints the ids of a cluster's node containers: kind cannot put our labels on them, they carry its own. */
export const clusterContainers = (cluster: string): string[] => [
  'ps',
  '--all',
  '--quiet',
  '--no-trunc',
  `--filter=label=${KIND_CLUSTER_LABEL}=${cluster}`,
]

/** Prints the names of what else carries a cluster's label. */
export const clusterNetworks = (cluster: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=label=${LABEL.cluster}=${cluster}`,
]

export const removeContainers = (ids: readonly string[]): string[] => ['rm', '--force', '--volumes', ...ids]
export const removeNetworks = (ids: readonly string[]): string[] => ['network', 'rm', ...ids]
export const removeVolume = (name: string): string[] => ['volume', 'rm', '--force', name]

/** Prints a container's published ports as JSON, as GET /containers/id/json has them in NetworkSettings.Ports. */
export const publishedPorts = (container: string): string[] => [
  'container',
  'inspect',
  '--format={{json .NetworkSettings.Ports}}',
  container,
]

/** Prints an id for each of the references that the engine has; fails where it lacks one. */
export const inspectImages = (references: readonly string[]): string[] => [
  'image',
  'inspect',
  '--format={{.Id}}',
  '--',
  ...references,
]

export const pullImage = (reference: string): string[] => ['pull', '--quiet', '--', reference]
export const saveImages = (references: readonly string[]): string[] => ['save', '--', ...references]

/** Reads an image archive from stdin into the node's containerd, where the kubelet looks (namespace k8s.io). */
export const importImages = (node: string): string[] => [
  'exec',
  '--interactive',
  node,
  'ctr',
  '--namespace=k8s.io',
  'images',
  'import',
  '--digests',
  '-',
]
