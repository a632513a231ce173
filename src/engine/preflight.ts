/** What is seen before anything is created: what will fail stops, what may fail is a warning. */
import type { Engine } from '../plan.ts'

/** What a container on the engine saw of it; it runs the node image as a node would be run. */
export interface Probe {
  /** fs.inotify limits of the engine's kernel. */
  readonly inotifyInstances: number
  readonly inotifyWatches: number
  /** Free bytes where the engine keeps containers. */
  readonly freeSpace: number
}

/** A host port that a container holds. */
export interface HeldPort {
  readonly port: number
  readonly by: string
}

export interface Facts {
  readonly engine: Pick<Engine, 'version' | 'architecture' | 'memory' | 'cgroupVersion' | 'storageDriver'>
  /** The cluster's Kubernetes version, such as v1.34.0; undefined where nothing tells it before creation. */
  readonly kubernetesVersion: string | undefined
  readonly probe: Probe
  readonly heldPorts: readonly HeldPort[]
  readonly nodes: number
}

export interface Judgement {
  /** Sentences: each of these would make the creation fail. */
  readonly stops: readonly string[]
  /** Sentences: each of these may. */
  readonly warnings: readonly string[]
}

const GIB = 1024 ** 3

/** kubeadm refuses less than 1700 MB; kind's own advice is 2 GiB for one node (https://kind.sigs.k8s.io/docs/user/quick-start). */
const MEMORY = 2 * GIB
/** A node unpacks its images beside its own layers; below this the kubelet starts with disk pressure. */
const FREE_SPACE = 2 * GIB
/** What kind's documentation advises: https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files. */
const INOTIFY = { instances: 512, watches: 524_288 }
/** From this minor on the kubelet refuses to start on cgroup v1 unless told (failCgroupV1 of KEP-5573). */
const NO_CGROUP_V1 = 35

/** Judges the engine. Pure. */
export function judge({ engine, kubernetesVersion, probe, heldPorts, nodes }: Facts): Judgement {
  const stops: string[] = []
  const warnings: string[] = []

  for (const { port, by } of heldPorts) {
    stops.push(
      `ports: the engine's port ${port} is held by the container ${by}; remove that, or let the engine pick: write the NodePort alone`,
    )
  }
  if (engine.cgroupVersion === '1' && minor(kubernetesVersion) >= NO_CGROUP_V1) {
    stops.push(
      `kubernetes-version: the engine has cgroup v1, where the kubelet of Kubernetes ${kubernetesVersion} does not start; take kubernetes-version 1.${NO_CGROUP_V1 - 1} or an engine with cgroup v2`,
    )
  }
  if (engine.memory < MEMORY) {
    warnings.push(
      `the engine has ${gib(engine.memory)} of memory, and a cluster wants ${gib(MEMORY)}: programs in it may be killed (exit code 137)`,
    )
  }
  if (probe.freeSpace < FREE_SPACE) {
    warnings.push(
      `the engine's disk has ${gib(probe.freeSpace)} free, and a cluster wants ${gib(FREE_SPACE)}: prune images there (docker system prune)`,
    )
  }
  const instances = INOTIFY.instances
  if (probe.inotifyInstances < instances || probe.inotifyWatches < INOTIFY.watches) {
    warnings.push(
      `the engine's kernel has fs.inotify.max_user_instances=${probe.inotifyInstances} and fs.inotify.max_user_watches=${probe.inotifyWatches}, which ${nodes === 1 ? 'a node' : `${nodes} nodes`} may use up ("too many open files"): set them to ${instances} and ${INOTIFY.watches} with sysctl on the engine's machine`,
    )
  }
  if (engine.storageDriver === 'vfs') {
    warnings.push(
      'the engine keeps images with the storage driver vfs, which copies every layer whole: slow, and large; put /var/lib/docker on a volume, so that it takes overlay2',
    )
  }
  return { stops, warnings }
}

function minor(version: string | undefined): number {
  return Number(/^v?1\.(\d+)/.exec(version ?? '')?.[1] ?? 0)
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`
}
