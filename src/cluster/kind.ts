/** The kind CLI: its arguments and variables. */
import type { Argv } from '../lib/run.ts'
import type { Plan } from '../plan.ts'

/**
 * Creates the cluster; the config comes on stdin. kind's own wait is not used: it exits 0 on a time-out and looks at
 * control planes only. The config names each node's image, which `--image` would override. Nodes of a failed creation are retained until their logs are exported.
 *
 * @param program kind's path
 */
export const createCluster = (program: string, plan: Plan): Argv => [
  program,
  'create',
  'cluster',
  `--name=${plan.cluster}`,
  '--config=-',
  `--kubeconfig=${plan.folder}/kubeconfig-kind`,
  '--wait=0',
  '--retain',
]

/** Prints the kubeconfig; the internal one names the control plane's container, for the cluster's network. */
export const getKubeconfig = (program: string, plan: Plan, internal: boolean): Argv => [
  program,
  'get',
  'kubeconfig',
  `--name=${plan.cluster}`,
  ...(internal ? ['--internal'] : []),
]

/** The variables that bind kind to Docker and to the cluster's own network. */
export const kindEnv = (plan: Plan): Readonly<Record<string, string | undefined>> => ({
  ...registryAroundProxy(plan),
  KIND_EXPERIMENTAL_PROVIDER: 'docker',
  KIND_EXPERIMENTAL_DOCKER_NETWORK: plan.network,
  KUBECONFIG: undefined,
})

/** kind hands NO_PROXY on to the nodes, with their own names and networks in it; the registry's name is not among those. */
function registryAroundProxy({ engine, registry }: Plan): Record<string, string> {
  if (registry === undefined) return {}
  return Object.fromEntries(Object.entries(engine.aroundProxy).map(([name, value]) => [name, `${value},${registry}`]))
}
