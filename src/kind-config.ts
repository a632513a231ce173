/** The user's kind config: how it is read and what it must be. Pure, a leaf. */
import { parseAllDocuments } from 'yaml'
import { Problem } from './lib/problem.ts'

/** A kind Cluster config as parsed (https://pkg.go.dev/sigs.k8s.io/kind/pkg/apis/config/v1alpha4). */
export interface KindConfig {
  readonly [key: string]: unknown
  readonly name?: string
  readonly nodes?: readonly KindNode[]
  readonly networking?: Readonly<Record<string, unknown>>
  readonly containerdConfigPatches?: readonly string[]
  readonly kubeadmConfigPatches?: readonly string[]
  readonly kubeadmConfigPatchesJSON6902?: readonly unknown[]
}

export interface KindNode {
  readonly [key: string]: unknown
  readonly role?: string
  readonly image?: string
  readonly extraPortMappings?: readonly Readonly<Record<string, unknown>>[]
  readonly extraMounts?: readonly { readonly hostPath?: unknown; readonly containerPath?: unknown }[]
}

/** The fields that kind knows, each with its type. It refuses others, but only when it is at work. */
type Fields = Readonly<Record<string, 'text' | 'list of texts' | 'list' | 'mapping' | 'number' | 'boolean'>>

const CLUSTER: Fields = {
  ...{ kind: 'text', apiVersion: 'text', name: 'text', nodes: 'list', networking: 'mapping' },
  ...{ featureGates: 'mapping', runtimeConfig: 'mapping' },
  ...{ kubeadmConfigPatches: 'list of texts', kubeadmConfigPatchesJSON6902: 'list' },
  ...{ containerdConfigPatches: 'list of texts', containerdConfigPatchesJSON6902: 'list of texts' },
}
const NODE: Fields = {
  ...{ role: 'text', image: 'text', labels: 'mapping', extraMounts: 'list', extraPortMappings: 'list' },
  ...{ kubeadmConfigPatches: 'list of texts', kubeadmConfigPatchesJSON6902: 'list' },
}
const NETWORKING: Fields = {
  ...{ ipFamily: 'text', apiServerPort: 'number', apiServerAddress: 'text', podSubnet: 'text' },
  ...{ serviceSubnet: 'text', disableDefaultCNI: 'boolean', kubeProxyMode: 'text', dnsSearch: 'list of texts' },
}

/**
 * Reads a kind config.
 *
 * @param yaml its text
 * @throws Problem that goes on where a name for the text was said: "is not YAML: ..."
 */
export function readKindConfig(yaml: string): KindConfig {
  // Merge keys (<<) are not in YAML 1.2, but in every file that has anchors; kind's own reader takes them.
  const [document, ...more] = parseAllDocuments(yaml, { merge: true })
  if (document === undefined) throw new Problem('is empty')
  const error = [document, ...more].flatMap(each => each.errors)[0]
  if (error) throw new Problem(`is not YAML: ${(error.message.split('\n')[0] ?? '').replace(/:$/, '')}`)
  if (more.length > 0) throw new Problem(`has ${more.length + 1} YAML documents, and kind takes one Cluster`)
  return checkKindConfig(document.toJS())
}

/** Checks a config that is parsed already, as Buildkite hands it over. @throws as `readKindConfig` */
export function checkKindConfig(parsed: unknown): KindConfig {
  if (!isMapping(parsed)) throw new Problem('is not a kind Cluster config')
  if (parsed['kind'] !== 'Cluster' || parsed['apiVersion'] !== 'kind.x-k8s.io/v1alpha4') {
    const found = `kind: ${String(parsed['kind'])}, apiVersion: ${String(parsed['apiVersion'])}`
    throw new Problem(
      `is not a kind Cluster config (kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4) but has ${found}`,
    )
  }
  const config = checked(parsed, CLUSTER, '')
  const networking =
    config['networking'] === undefined ? {} : { networking: checked(config['networking'], NETWORKING, 'networking.') }
  if (config['nodes'] === undefined) return { ...config, ...networking }
  const nodes = (config['nodes'] as unknown[]).map((node, index) => checkedNode(node, `nodes[${index}]`))
  if (nodes.length > 0 && !nodes.some(({ role }) => (role ?? 'control-plane') === 'control-plane')) {
    throw new Problem('has no node with the role control-plane')
  }
  return { ...config, ...networking, nodes }
}

function checkedNode(node: unknown, where: string): KindNode {
  const fields = checked(node, NODE, `${where}.`)
  const { role } = fields
  if (role !== undefined && role !== 'control-plane' && role !== 'worker') {
    throw new Problem(`has ${where}.role: ${String(role)}; there are control-plane and worker`)
  }
  for (const list of ['extraMounts', 'extraPortMappings']) {
    if ((fields[list] as unknown[] | undefined)?.some(item => !isMapping(item))) {
      throw new Problem(`has ${where}.${list} with something that is no mapping`)
    }
  }
  return fields
}

/** The fields of a mapping, without those that are null, which kind takes as absent. */
function checked(value: unknown, fields: Fields, where: string): Record<string, unknown> {
  const place = where.replace(/\.$/, '')
  if (!isMapping(value)) throw new Problem(`has ${place} that is no mapping`)
  const entries = Object.entries(value).filter(([, field]) => field !== null)
  for (const [name, field] of entries) {
    const type = fields[name]
    if (type === undefined) {
      throw new Problem(
        `has ${where}${name}, which kind does not know; ${place || 'a Cluster'} has ${Object.keys(fields).join(', ')}`,
      )
    }
    if (!is(type, field)) throw new Problem(`has ${where}${name} that is no ${type}`)
  }
  return Object.fromEntries(entries)
}

function is(type: Fields[string], value: unknown): boolean {
  switch (type) {
    case 'text':
      return typeof value === 'string'
    case 'number':
      return typeof value === 'number'
    case 'boolean':
      return typeof value === 'boolean'
    case 'mapping':
      return isMapping(value)
    case 'list':
      return Array.isArray(value)
    case 'list of texts':
      return Array.isArray(value) && value.every(item => typeof item === 'string')
  }
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
