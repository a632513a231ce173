import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node'
import type { Credentials } from '../engine/reach.ts'

/** Reads a kubeconfig as kind prints it. */
export function readKubeconfig(yaml: string): KubeConfig {
  const kubeconfig = new KubeConfig()
  kubeconfig.loadFromString(yaml)
  return kubeconfig
}

/** The same kubeconfig with its server at another address; certificates are verified as before. */
export function withServer(kubeconfig: KubeConfig, server: string): KubeConfig {
  const moved = new KubeConfig()
  moved.loadFromOptions({
    clusters: kubeconfig.clusters.map(cluster => ({ ...cluster, server })),
    users: kubeconfig.users,
    contexts: kubeconfig.contexts,
    currentContext: kubeconfig.currentContext,
  })
  return moved
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
