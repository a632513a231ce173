import { accessSync, chmodSync, constants, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import type { Docker } from '../engine/docker.ts'
import type { Credentials } from '../engine/reach.ts'
import { Problem } from '../lib/problem.ts'
import { LABEL, recordName } from '../plan.ts'
import { findRecord } from './remove.ts'

/**
 * Reads a kubeconfig as kind prints it, and names the namespace that kind leaves out: without one kubectl takes that of
 * the pod it runs in, which a job in a pod has around (client-go's DeferredLoadingClientConfig.Namespace).
 */
export function readKubeconfig(yaml: string): KubeConfig {
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromString(yaml)
  return changed(kubeconfig, {
    contexts: kubeconfig.contexts.map(context => ({ ...context, namespace: context.namespace ?? 'default' })),
  })
}

/** The same kubeconfig with its server at another address; certificates are verified as before. */
export function withServer(kubeconfig: KubeConfig, server: string): KubeConfig {
  return changed(kubeconfig, { clusters: kubeconfig.clusters.map(cluster => ({ ...cluster, server })) })
}

/** A KubeConfig's parts can only be set together. */
function changed(
  { clusters, users, contexts, currentContext }: KubeConfig,
  parts: Partial<Pick<KubeConfig, 'clusters' | 'contexts'>>,
): KubeConfig {
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromOptions({ clusters, users, contexts, currentContext, ...parts })
  return kubeconfig
}

/** Whether a file is a kubeconfig that this program wrote, for one cluster or for any. */
export function isOurs(path: string, cluster?: string): boolean {
  const its = clusterOf(path)
  return its !== undefined && (cluster === undefined || its === cluster)
}

/** The cluster of a kubeconfig that this program wrote; undefined where it is none. */
function clusterOf(path: string): string | undefined {
  try {
    const { 'current-context': context = '' } = JSON.parse(readFileSync(path, 'utf8')) as { 'current-context'?: string }
    return /^kind-(.+)$/.exec(context)?.[1]
  } catch {
    return undefined
  }
}

/**
 * Sees that writing a kubeconfig would not cost the user a file. One of ours that a killed job left may be replaced.
 *
 * @throws Problem where there is another file, or none can be made
 */
export function checkKubeconfigPath(path: string): void {
  if (existsSync(path) && !isOurs(path)) {
    throw new Problem(
      `kubeconfig: ${path} exists already and would be replaced; name a file that does not exist, or leave the option out`,
    )
  }
  let folder = dirname(path)
  while (!existsSync(folder)) folder = dirname(folder)
  try {
    accessSync(folder, constants.W_OK)
  } catch {
    throw new Problem(
      `kubeconfig: ${path} cannot be made, since this user cannot write to ${folder}; name another path`,
    )
  }
}

/**
 * Sees that the kubeconfig that is there is not that of a cluster that is up: another job uses it, or this one.
 *
 * @throws Problem that names the cluster
 */
export async function checkKubeconfigOwner(docker: Docker, path: string): Promise<void> {
  const cluster = clusterOf(path)
  const labels = cluster === undefined ? undefined : await findRecord(docker, recordName(cluster))
  if (cluster === undefined || labels === undefined) return
  throw new Problem(
    `kubeconfig: ${path} is that of the cluster ${cluster}, which is on the engine (of the job ${labels[LABEL.job]}); name another path, since its job would get this cluster instead`,
  )
}

/** Writes a kubeconfig for this user's eyes only: 0600, also where the file was there before. */
export function writeKubeconfig(path: string, kubeconfig: KubeConfig): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  writeFileSync(path, `${kubeconfig.exportConfig()}\n`, { mode: 0o600 })
  chmodSync(path, 0o600)
}

/** The PEM texts in a kubeconfig of kind's, whose certificates are always inline. */
export function credentials(kubeconfig: KubeConfig): Credentials {
  const decode = (base64: string | undefined): string => Buffer.from(base64 ?? '', 'base64').toString('utf8')
  const user = kubeconfig.getCurrentUser()
  return {
    ca: decode(kubeconfig.getCurrentCluster()?.caData),
    cert: decode(user?.certData),
    key: decode(user?.keyData),
  }
}
