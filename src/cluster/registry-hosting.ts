import { CoreV1Api, type KubeConfig } from '@kubernetes/client-node'
import { ask } from './api.ts'

/** What a cluster says of its registry: where tools outside, the nodes and pods have it, each `host:port`. */
export interface RegistryHosting {
  readonly host: string
  readonly hostFromContainerRuntime: string
  readonly hostFromClusterNetwork: string
  readonly help: string
}

/**
 * Says in the cluster where its registry is, as tools look for it:
 * https://github.com/kubernetes/enhancements/tree/master/keps/sig-cluster-lifecycle/generic/1755-communicating-a-local-registry
 */
export async function tellRegistry(kubeconfig: KubeConfig, hosting: RegistryHosting): Promise<void> {
  await ask(kubeconfig, CoreV1Api, 'to note the registry', api =>
    api.createNamespacedConfigMap({ namespace: 'kube-public', body: registryConfigMap(hosting) }),
  )
}

/** The ConfigMap of KEP-1755. Its value is YAML, which JSON is. */
export function registryConfigMap(hosting: RegistryHosting) {
  return {
    metadata: { name: 'local-registry-hosting', namespace: 'kube-public' },
    data: { 'localRegistryHosting.v1': JSON.stringify(hosting, undefined, 2) },
  }
}
