/** What nodes offer to pods: how it is set, and how it is told. */
import { CoreV1Api, type KubeConfig } from '@kubernetes/client-node'
import type { Judgement } from '../engine/preflight.ts'
import { formatMemory, parseQuantity } from '../lib/quantity.ts'
import type { Options } from '../options.ts'
import type { Engine } from '../plan.ts'
import { ask } from './api.ts'

/** CPUs and bytes. */
export interface Amount {
  readonly cpus: number
  readonly memory: number
}

const MIB = 1024 ** 2
const GIB = 1024 ** 3

/**
 * What a node's own programs get beside its pods: systemd, containerd and the kubelet. The control plane's programs are pods
 * and count among those.
 */
export const RESERVE: Amount = { cpus: 0.5, memory: 512 * MIB }

/**
 * The least that a node with the control plane must offer: its pods ask for 950 millicores (kubeadm's manifests, CoreDNS
 * and the CNI), and the API server and etcd take some 600 MiB.
 */
const CONTROL_PLANE: Amount = { cpus: 1, memory: GIB }

/**
 * Judges what nodes shall offer by what the engine has. CPUs that nodes share make pods slower, which is a warning; memory
 * that is not there ends in the engine's kernel killing whatever it finds, which stops.
 *
 * @param nodes how many there will be, each of which offers what is asked
 */
export function judgeCapacity(
  { cpus, memory }: Pick<Options, 'cpus' | 'memory'>,
  nodes: number,
  engine: Pick<Engine, 'cpus' | 'memory'>,
): Judgement {
  const stops: string[] = []
  const warnings: string[] = []
  const each = nodes === 1 ? '' : ` for each of ${nodes} nodes`
  if (cpus !== undefined && cpus > engine.cpus) {
    stops.push(`cpus: ${cpus} is more than the engine's ${engine.cpus}`)
  } else if (cpus !== undefined && cpus * nodes > engine.cpus) {
    warnings.push(
      `cpus: ${cpus}${each} are more than the engine's ${engine.cpus}: pods that compute at the same time share them`,
    )
  }
  if (memory !== undefined && memory * nodes > engine.memory) {
    stops.push(`memory: ${formatMemory(memory)}${each} is more than the engine's ${formatMemory(engine.memory)}`)
  }
  if (cpus !== undefined && cpus < CONTROL_PLANE.cpus) {
    stops.push(
      `cpus: ${cpus} is too little for the control plane, whose pods alone ask for 0.95; give at least ${CONTROL_PLANE.cpus}`,
    )
  }
  if (memory !== undefined && memory < CONTROL_PLANE.memory) {
    stops.push(
      `memory: ${formatMemory(memory)} is too little for the control plane to live; give at least ${formatMemory(CONTROL_PLANE.memory)}`,
    )
  }
  return { stops, warnings }
}

/**
 * The kubelet's reservation that leaves pods what was asked for. A kubelet in a container sees the whole engine, so
 * everything else is reserved: https://kubernetes.io/docs/tasks/administer-cluster/reserve-compute-resources/.
 *
 * @returns a patch of KubeletConfiguration; undefined where nothing was asked for
 */
export function reservationPatch(
  asked: Pick<Options, 'cpus' | 'memory'>,
  engine: Pick<Engine, 'cpus' | 'memory'>,
): string | undefined {
  const reserved: Record<string, string> = {}
  if (asked.cpus !== undefined) reserved['cpu'] = `${Math.round((engine.cpus - asked.cpus) * 1000)}m`
  if (asked.memory !== undefined) reserved['memory'] = `${Math.round(engine.memory - asked.memory)}`
  if (Object.keys(reserved).length === 0) return undefined
  return JSON.stringify({ kind: 'KubeletConfiguration', systemReserved: reserved })
}

/** What a node's container is held to: what its pods get, and the reserve for its own programs. */
export function containerLimits(
  asked: Pick<Options, 'cpus' | 'memory'>,
  engine: Pick<Engine, 'cpus' | 'memory'>,
): Partial<Amount> {
  return {
    ...(asked.cpus === undefined ? {} : { cpus: Math.min(asked.cpus + RESERVE.cpus, engine.cpus) }),
    ...(asked.memory === undefined ? {} : { memory: Math.min(asked.memory + RESERVE.memory, engine.memory) }),
  }
}

/** A node and what its pods can get. */
export interface NodeCapacity extends Amount {
  readonly name: string
}

/** Reads from the cluster what each node offers to pods (allocatable). */
export async function readCapacity(kubeconfig: KubeConfig): Promise<NodeCapacity[]> {
  const { items } = await ask(kubeconfig, CoreV1Api, 'what its nodes offer', api => api.listNode())
  return items.map(node => ({
    name: node.metadata?.name ?? '',
    cpus: parseQuantity(node.status?.allocatable?.['cpu'] ?? '') ?? 0,
    memory: parseQuantity(node.status?.allocatable?.['memory'] ?? '') ?? 0,
  }))
}

/** The smallest of all nodes in each respect: what a pod can count on wherever it is. */
export function smallest(nodes: readonly NodeCapacity[]): Amount {
  return { cpus: Math.min(...nodes.map(node => node.cpus)), memory: Math.min(...nodes.map(node => node.memory)) }
}
