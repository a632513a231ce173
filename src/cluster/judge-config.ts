import type { Judgement } from '../engine/preflight.ts'
import type { KindConfig } from '../kind-config.ts'
import type { Options } from '../options.ts'
import { ownRegistries } from './config.ts'

/** From this Kubernetes on kind writes kubeadm's v1beta4, below it v1beta3 (kind 0.33, pkg/cluster/internal/kubeadm/config.go). */
const V1BETA4 = 36

/**
 * Judges what the user's config and ports will come to.
 *
 * @param facts.kubernetesVersion such as v1.34.0; undefined where nothing tells it before creation
 * @param facts.loopback true where the engine's loopback addresses are this step's too
 */
export function judgeConfig(
  options: Pick<Options, 'config' | 'ports' | 'cpus' | 'memory' | 'registry' | 'registryMirrors'>,
  facts: { readonly kubernetesVersion: string | undefined; readonly loopback: boolean },
): Judgement {
  const config = options.config ?? {}
  const stops: string[] = []
  const warnings: string[] = []

  if (containerdPatches(config).some(patch => REGISTRY.test(patch))) {
    stops.push(
      'config: containerdConfigPatches sets registry.mirrors or registry.configs, which containerd 2 does not have any more; give mirrors as registry-mirrors (docker.io=https://mirror.example) instead, and for a registry of the job set registry: true',
    )
  }
  const own = ownRegistries(options.config)
  if (own !== undefined && (options.registry !== undefined || options.registryMirrors.length > 0)) {
    stops.push(
      `config: it ${own}, and registry and registry-mirrors write to /etc/containerd/certs.d; leave out one of the two`,
    )
  }
  if ((options.cpus ?? options.memory) !== undefined && /systemReserved/.test(JSON.stringify(patches(config)))) {
    stops.push('config: a patch sets systemReserved, and so do cpus and memory; leave out one of the two')
  }

  const expected = kubeadmVersion(facts.kubernetesVersion)
  const others = new Set(patches(config).flatMap(kubeadmVersionsIn))
  for (const version of others) {
    if (expected === undefined || version === expected) continue
    warnings.push(
      `config: a kubeadm patch for ${version} is passed over with Kubernetes ${facts.kubernetesVersion}, for which kind writes ${expected}; leave out its apiVersion and it always applies`,
    )
  }

  if (!facts.loopback) {
    const mapped = (config.nodes ?? []).flatMap(node => node.extraPortMappings ?? [])
    const addresses = [
      ...options.ports.map(({ node, address }) => ({ node, address })),
      ...mapped.map(mapping => ({ node: mapping['containerPort'], address: mapping['listenAddress'] })),
    ]
    for (const { node, address } of addresses) {
      if (typeof address !== 'string' || !(address.startsWith('127.') || address === '::1')) continue
      warnings.push(
        `ports: ${node} is published at ${address} of the engine, which is not this step's and not reached from here; leave out the address`,
      )
    }
  }
  return { stops, warnings }
}

/**
 * The tables `registry.mirrors` and `registry.configs` as a dotted key, as keys in the table `registry`, and as a path of
 * a JSON patch.
 */
const REGISTRY = /^[^#\n]*registry["']?(?:\s*\.\s*|\/|\]\s*)["']?(?:mirrors|configs)\b/m

function containerdPatches(config: KindConfig): string[] {
  return [
    ...texts(config, 'containerdConfigPatches'),
    ...texts(config, 'containerdConfigPatchesJSON6902').map(patch => patch.replaceAll('~1', '/')),
  ]
}

/** The version of kubeadm's API that kind writes; undefined where the Kubernetes version is not known. */
export function kubeadmVersion(kubernetesVersion: string | undefined): string | undefined {
  const minor = /^v?1\.(\d+)/.exec(kubernetesVersion ?? '')?.[1]
  if (minor === undefined) return undefined
  return Number(minor) < V1BETA4 ? 'v1beta3' : 'v1beta4'
}

/** Every kubeadm patch of the config and its nodes, as text: merge patches as they are, JSON patches as JSON. */
function patches(config: KindConfig): string[] {
  return [config, ...(config.nodes ?? [])].flatMap(level => [
    ...texts(level, 'kubeadmConfigPatches'),
    ...list(level, 'kubeadmConfigPatchesJSON6902').map(patch => JSON.stringify(patch)),
  ])
}

/** The versions of kubeadm's API that a patch's documents name: none where it has none, or patches another kind of config. */
function kubeadmVersionsIn(patch: string): string[] {
  const merge = patch.matchAll(/^[^#\n]*apiVersion["']?\s*:\s*["']?kubeadm\.k8s\.io\/(v\w+)/gm)
  const json = /"group":"kubeadm\.k8s\.io"/.test(patch) ? patch.matchAll(/"version":"(v\w+)"/g) : []
  return [...merge, ...json].map(match => match[1] ?? '')
}

function list(level: Readonly<Record<string, unknown>>, key: string): unknown[] {
  const value = level[key]
  return Array.isArray(value) ? value : []
}

function texts(level: Readonly<Record<string, unknown>>, key: string): string[] {
  return list(level, key).filter(item => typeof item === 'string')
}
