/** Which kind, Kubernetes and kubectl go together, and which node image that is. */
import type { Judgement } from '../engine/preflight.ts'
import { Problem } from '../lib/problem.ts'
import type { NodeImage } from '../options.ts'
import { KIND, NODE_IMAGES, type NodeImageRow } from './kind-releases.ts'

/** The buildx release that is installed where the docker CLI has no plugin of that name. */
export const BUILDX = 'v0.38.2'

/**
 * The Kubernetes minors that the pinned kind is said to work with. Its source names no such range: 1.37 is its own image's,
 * 1.31 is the oldest for which its RELEASE.md builds node images. Older images are tried all the same, with a warning.
 */
export const SUPPORTED = { oldest: '1.31', newest: '1.37' } as const

/** A node image as chosen. */
export interface ChosenImage {
  /** With its digest where it is from the table. */
  readonly reference: string
  /** Such as v1.34.0; undefined where nothing tells it. */
  readonly kubernetesVersion: string | undefined
}

/**
 * Picks the node image.
 *
 * A minor gets its newest row, a full version the row that has it. Without a choice it is the image that the kind in use
 * was released with. For a kind that is not in the table (a patch release, one newer than the table, a build of one's own)
 * it is that of the release before it: kind does its best with images of other releases, and what a job gets is known
 * before anything is made.
 *
 * @param choice an archive's reference is known by now
 * @param kindVersion the kind in use, such as v0.33.0
 * @throws Problem that lists what there is
 */
export function nodeImage(choice: Exclude<NodeImage, { kind: 'archive' }>, kindVersion: string): ChosenImage {
  if (choice.kind === 'image') {
    return { reference: choice.reference, kubernetesVersion: kubernetesVersionOf(choice.reference) }
  }
  if (choice.kind === 'default') return chosen(ownRow(kindVersion))
  const { version } = choice
  const best = NODE_IMAGES.find(row => row.kubernetes === version || minorOf(row.kubernetes) === version)
  if (best === undefined) throw new Problem(`kubernetes-version: ${refuseVersion(version)}`)
  return chosen(best)
}

/**
 * Says where a kind is not known to work with a Kubernetes version. It is tried all the same: kind promises an image to
 * work with the release it came with and does its best with others (https://kind.sigs.k8s.io/docs/design/node-image).
 *
 * @returns a sentence to warn with, or undefined
 */
export function doubt(kubernetesVersion: string, kindVersion: string): string | undefined {
  const minor = minorOf(kubernetesVersion.replace(/^v/, ''))
  const own = NODE_IMAGES.find(row => row.kind === kindVersion)?.kubernetes
  if (own !== undefined && compare(minor, minorOf(own)) > 0) {
    return `Kubernetes ${minor} is newer than kind ${kindVersion}, which goes with ${minorOf(own)} at most; if the cluster does not start, take a newer kind-version`
  }
  if (kindVersion === KIND && compare(minor, SUPPORTED.oldest) < 0) {
    return `kind ${KIND} goes with Kubernetes ${SUPPORTED.oldest} to ${SUPPORTED.newest}, and this is ${minor}; if the cluster does not start, take an older kind-version`
  }
  return undefined
}

/** What is wrong with a Kubernetes version: the table has no image for it. Undefined where it has one. */
export function refuseVersion(version: string): string | undefined {
  if (NODE_IMAGES.some(row => row.kubernetes === version || minorOf(row.kubernetes) === version)) return undefined
  const known = [...new Set(NODE_IMAGES.map(row => row.kubernetes))].sort((a, b) => compare(b, a))
  return `there is no node image for ${version} in the table, which has ${known.join(', ')}; take one of these or give another image as node-image`
}

/** The doubt as preflight takes it; a version that nothing tells before creation raises none. */
export function judgeVersions(kubernetesVersion: string | undefined, kindVersion: string): Judgement {
  const doubted = kubernetesVersion === undefined ? undefined : doubt(kubernetesVersion, kindVersion)
  return { stops: [], warnings: doubted === undefined ? [] : [doubted] }
}

/** True where a kind knows networking.dnsSearch (v0.18.0 and newer: its pkg/apis/config/v1alpha4/types.go). */
export function hasDnsSearch(kindVersion: string): boolean {
  return compare(numberOf(kindVersion), '0.18.0') >= 0
}

/** The row of a kind release, or of the newest one before it; for one before them all it is the oldest. */
function ownRow(kindVersion: string): NodeImageRow {
  const number = numberOf(kindVersion)
  const row = NODE_IMAGES.find(row => compare(row.kind.slice(1), number) <= 0) ?? NODE_IMAGES.at(-1)
  if (row === undefined) throw new Error('the table of node images is empty')
  return row
}

/**
 * Says where a kubectl is further from the cluster than Kubernetes supports: one minor to either side
 * (https://kubernetes.io/releases/version-skew-policy/#kubectl).
 */
export function skew(kubectl: string, kubernetes: string): string | undefined {
  const minor = (version: string): number => Number(/^v1\.(\d+)/.exec(version)?.[1])
  const distance = Math.abs(minor(kubectl) - minor(kubernetes))
  if (!(distance > 1)) return undefined
  return `kubectl-version: kubectl ${kubectl} on PATH is ${distance} minors from Kubernetes ${kubernetes}, and one is supported; kubectl-version ${/^v[\d.]+/.exec(kubernetes)?.[0]} installs the one that fits`
}

/** The Kubernetes version that a node image's tag tells, such as v1.34.0, or undefined. */
export function kubernetesVersionOf(reference: string): string | undefined {
  return /:(v\d+\.\d+\.\d+)(?:[-_][\w.-]*)?(?:@|$)/.exec(reference)?.[1]
}

function chosen(row: NodeImageRow): ChosenImage {
  return { reference: `kindest/node:v${row.kubernetes}@${row.digest}`, kubernetesVersion: `v${row.kubernetes}` }
}

function minorOf(version: string): string {
  return version.split('.').slice(0, 2).join('.')
}

/** The numbers of a kind's version, of the pinned one where it tells none. */
function numberOf(kindVersion: string): string {
  return /\d+\.\d+\.\d+/.exec(kindVersion)?.[0] ?? KIND.slice(1)
}

/** Compares versions of numbers and dots by their numbers; a missing part counts as 0. */
function compare(a: string, b: string): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)]
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0)
    if (difference !== 0) return difference
  }
  return 0
}
