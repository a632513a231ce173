/** What is seen before anything is created: what will fail stops, what may fail is a warning. Pure but for `probe`. */

import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { CommandFailed, type Result, whatItSaid } from '../lib/run.ts'
import type { Engine } from '../plan.ts'
import { diskOfEngine, probeEngine, publishedByContainers, type Wish } from './containers.ts'
import type { Docker } from './docker.ts'
import { containerImages } from './images.ts'

export interface Judgement {
  /** Sentences: each of these makes the creation fail. */
  readonly stops: readonly string[]
  /** Sentences: each of these may. */
  readonly warnings: readonly string[]
}

/** Acts on judgements, and remembers what it warned of. */
export interface Heed {
  /** Warns, each sentence once. @throws Problem with all that makes the creation fail */
  heed(judgement: Judgement): void
  /** Runs work; its failure comes with the warnings that came before it, one of which may be the cause. */
  blame<T>(work: () => Promise<T>): Promise<T>
}

export function heeding(log: { readonly warning: (message: string) => void }): Heed {
  const warned = new Set<string>()
  return {
    heed: ({ stops, warnings }) => {
      for (const warning of warnings) {
        if (!warned.has(warning)) log.warning(warning)
        warned.add(warning)
      }
      if (stops.length > 0) throw new Problem(stops.join('\n'))
    },
    blame: async work => {
      try {
        return await work()
      } catch (failure) {
        if (warned.size === 0 || (failure instanceof CommandFailed && failure.endedBy === 'abort')) throw failure
        throw new Problem(
          `${messageOf(failure)}\nEarlier in this log there was a warning that may be the cause:\n${[...warned].map(w => `  ${w}`).join('\n')}`,
        )
      }
    },
  }
}

const GIB = 1024 ** 3

/** kubeadm refuses less than 1700 MB; the control plane's own programs take most of that. */
const MEMORY = 2 * GIB
/** A node unpacks images beside its own layers; with less the kubelet soon reports disk pressure. */
const FREE_SPACE = 2 * GIB
/** https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files */
const INOTIFY = { instances: 512, watches: 524_288 }
/**
 * How far the engine's clock may be ahead of the step's, in milliseconds. The cluster's certificates are valid from when kubeadm
 * makes them, some ten seconds into a creation that takes no more than minutes. One that is behind does no harm: what has an end
 * is told by the engine's clock.
 */
const CLOCK = { warns: 10_000, stops: 300_000 }
/** From this minor on the kubelet does not start on cgroup v1 unless failCgroupV1 is false (KEP-5573). */
const NO_CGROUP_V1 = 35

/**
 * Judges what the engine says of itself.
 *
 * @param kubernetesVersion such as v1.34.0; undefined where nothing tells it yet
 * @param allowsCgroupV1 true where the user's config says failCgroupV1: false
 */
export function judgeEngine(
  engine: Pick<Engine, 'memory' | 'cgroupVersion' | 'storageDriver' | 'clockAhead'>,
  kubernetesVersion: string | undefined,
  allowsCgroupV1: boolean,
): Judgement {
  const stops: string[] = []
  const warnings: string[] = []
  if (engine.cgroupVersion === '1' && minor(kubernetesVersion) >= NO_CGROUP_V1 && !allowsCgroupV1) {
    stops.push(
      `kubernetes-version: the engine has cgroup v1, where the kubelet of Kubernetes ${kubernetesVersion} does not start; take kubernetes-version "1.${NO_CGROUP_V1 - 1}", or an engine with cgroup v2`,
    )
  }
  if (engine.memory < MEMORY) {
    warnings.push(
      `the engine has ${gib(engine.memory)} of memory and a cluster wants ${gib(MEMORY)}: programs in it may be killed (exit code 137); give the engine more`,
    )
  }
  // What it said of its time took a while to come, so that it cannot seem to be more ahead than it is.
  if (engine.clockAhead > CLOCK.warns) {
    const ahead = `the engine's clock is ${formatDuration(engine.clockAhead)} ahead of this step's, and certificates of the cluster`
    const advice = 'set the clocks of both machines (NTP)'
    if (engine.clockAhead > CLOCK.stops) stops.push(`${ahead} would not be valid here until then; ${advice}`)
    else warnings.push(`${ahead} may not be valid here yet when they are looked at; ${advice}`)
  }
  if (engine.storageDriver === 'vfs') {
    warnings.push(
      'the engine stores images with vfs, which copies every layer whole: slow and large; put its /var/lib/docker on a volume, so that it takes overlay2',
    )
  }
  return { stops, warnings }
}

/** What a container saw of the engine; it ran the node image as a node is run. */
export interface Seen {
  readonly inotifyInstances: number
  readonly inotifyWatches: number
  /** Bytes free where the engine keeps its containers. */
  readonly freeSpace: number
}

/** Reads what the probe's script prints: two limits, then `df -kP /`. */
export function readProbe(stdout: string): Seen {
  const [instances = '', watches = '', , df = ''] = stdout.trim().split('\n')
  return {
    inotifyInstances: Number(instances),
    inotifyWatches: Number(watches),
    freeSpace: Number(df.trim().split(/\s+/)[3]) * 1024,
  }
}

export function judgeSeen({ inotifyInstances, inotifyWatches, freeSpace }: Seen): Judgement {
  const warnings: string[] = []
  if (freeSpace < FREE_SPACE) {
    warnings.push(
      `the engine's disk has ${gib(freeSpace)} free and a cluster wants ${gib(FREE_SPACE)}: free some there (docker system prune)`,
    )
  }
  if (inotifyInstances < INOTIFY.instances || inotifyWatches < INOTIFY.watches) {
    warnings.push(
      `the engine's kernel allows few inotify watchers, which ends in "too many open files": on its machine run sysctl fs.inotify.max_user_instances=${INOTIFY.instances} fs.inotify.max_user_watches=${INOTIFY.watches} (they are ${inotifyInstances} and ${inotifyWatches})`,
    )
  }
  return { stops: [], warnings }
}

/**
 * Runs a container for a moment as a node would be run: privileged, publishing and mounting what the node will.
 *
 * @returns what it saw, and the address to listen on: the wished one, or every one where the engine does not have it
 * (a Service or a proxy stands between)
 * @throws Problem where a node could not run either: it names the port that is held and who holds it, or the path that is
 * not there, or says that the engine allows no privileged containers
 */
export async function probe(
  docker: Docker,
  wish: Wish,
): Promise<{ readonly seen: Seen; readonly listenAddress: string }> {
  const attempt = async (listenAddress: string): Promise<Result> => docker.try(probeEngine({ ...wish, listenAddress }))
  const first = await attempt(wish.listenAddress)
  if (first.code === 0) return { seen: readProbe(first.stdout), listenAddress: wish.listenAddress }
  const isForeign = /cannot assign requested address/i.test(first.stderr)
  const second = isForeign ? await attempt(EVERYWHERE) : first
  if (second.code === 0) return { seen: readProbe(second.stdout), listenAddress: EVERYWHERE }
  throw await whyNot(docker, wish, second)
}

const EVERYWHERE = '0.0.0.0'

async function whyNot(docker: Docker, { ports, mounts, registryPort }: Wish, failed: Result): Promise<Problem> {
  const { stderr } = failed
  const said = whatItSaid(failed, 3)
  if (/port is already allocated|address already in use/i.test(stderr)) {
    const isHeld = (port: number | undefined): boolean => port !== undefined && new RegExp(`:${port}\\b`).test(stderr)
    if (registryPort !== undefined && isHeld(registryPort)) return heldRegistryPort(docker, registryPort)
    const held = ports.find(({ outer }) => isHeld(outer))?.outer
    return new Problem(
      `ports: the engine's port ${held ?? ''} is held by ${await whoHolds(docker, held)}; end that, or write the NodePort alone and let the engine pick`,
    )
  }
  // By our own paths, the longest first: the CLI ends the engine's sentence with a dot, which a path may also have.
  const missing = mounts
    .toSorted((a, b) => b.length - a.length)
    .find(path => stderr.includes(`bind source path does not exist: ${path}`))
  if (missing !== undefined) {
    return new Problem(
      `config: extraMounts names ${missing}, which is not on the engine's machine; a hostPath is a path there, not in this step: use a volume that both share, or copy the files into the node (docker cp)`,
    )
  }
  const address = ports.find(port => port.address !== undefined && stderr.includes(`${port.address}:`))?.address
  if (address !== undefined && /cannot assign requested address/i.test(stderr)) {
    return new Problem(`ports: the engine has no address ${address} to listen on; leave it out`)
  }
  if (/privileged|user namespace|authorization denied/i.test(stderr)) {
    return new Problem(`the engine runs no privileged containers, which kind's nodes are: ${said}`)
  }
  return new Problem(
    `the engine cannot run a container of the node image as a node is run: ${said}; run the same by hand: docker run --privileged`,
  )
}

/** What the kernel says of a disk without room. */
export const NO_SPACE = /no space left on device/i

/**
 * Whether the engine's disk is full: a container sees it so, or cannot even be made there.
 *
 * @param containers some of the engine, of whose image the one that looks is; those that are not there do not matter
 */
export async function isDiskFull(
  docker: Docker,
  containers: readonly string[],
  labels: Readonly<Record<string, string>>,
): Promise<boolean> {
  const options = { timeout: 10_000 }
  const [image = ''] = (await docker.try(containerImages(containers), options)).stdout.split('\n')
  const { stdout, stderr } = await docker.try(diskOfEngine(image, labels), options)
  return NO_SPACE.test(stderr) || / 100% /.test(stdout)
}

/** That the port which the user chose for the registry is somebody else's. */
export async function heldRegistryPort(docker: Docker, port: number): Promise<Problem> {
  return new Problem(
    `registry: the engine's port ${port} is held by ${await whoHolds(docker, port)}; end that, or write registry: true and a free one is picked`,
  )
}

async function whoHolds(docker: Docker, port: number | undefined): Promise<string> {
  const { stdout } = await docker.try(publishedByContainers)
  const holder = port === undefined ? undefined : holderOf(port, stdout)
  return holder === undefined ? 'a program on its machine' : `the container ${holder}`
}

/** Finds who publishes a port in lines of `name|0.0.0.0:8080->80/tcp, [::]:9000-9002->9000-9002/tcp`. */
export function holderOf(port: number, lines: string): string | undefined {
  for (const line of lines.split('\n')) {
    const [name, published = ''] = line.split('|')
    for (const [, first, last] of published.matchAll(/:(\d+)(?:-(\d+))?->/g)) {
      if (port >= Number(first) && port <= Number(last ?? first)) return name
    }
  }
  return undefined
}

function minor(version: string | undefined): number {
  return Number(/^v?1\.(\d+)/.exec(version ?? '')?.[1] ?? 0)
}

function gib(bytes: number): string {
  return `${(bytes / GIB).toFixed(1)} GiB`
}
