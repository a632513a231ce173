/**
 * What people are told of a use: noted while pre goes on, shown when it ends, in the log and in the summary. Whatever a use
 * offers more is one more fact or figure here, and all that shows them does. Plain data, a leaf.
 */

import type { When } from '../options.ts'

/** A line for people: `API server`, `https://docker:32800`. Values are what they copy. */
export interface Fact {
  readonly what: string
  readonly value: string
}

export interface NodeFigures {
  readonly name: string
  /** Allocatable: what pods can get. */
  readonly cpus: number
  /** Bytes, likewise. */
  readonly memory: number
}

export interface ImageFigures {
  readonly reference: string
  /** How it came into the nodes, in a few words: `loaded into 2 nodes`, `every node had it`. */
  readonly how: string
  /** Its size; this and what follows undefined where nobody knows. */
  readonly bytes?: number | undefined
  /** Bytes that were sent to all nodes for it. */
  readonly sent?: number | undefined
  readonly ms?: number | undefined
}

export interface Report {
  /** Undefined as long as nobody has read the options: the host's own way holds. */
  summary: When | undefined
  cluster: string | undefined
  /** Undefined where it did not come so far, false where it was not waited for. */
  ready: boolean | undefined
  engine: { readonly cpus: number; readonly memory: number } | undefined
  /** Kubernetes, kind, Docker, the node image. */
  readonly versions: Fact[]
  readonly nodes: NodeFigures[]
  /** Where the job reaches what: context, server, NodePorts, registry, builder. */
  readonly addresses: Fact[]
  readonly images: ImageFigures[]
  readonly warnings: string[]
  /** What the user is told of a failure. */
  failure: string | undefined
  /** Where the cluster's logs are, if they were exported. */
  logsDir: string | undefined
}

export function newReport(): Report {
  return {
    summary: undefined,
    cluster: undefined,
    ready: undefined,
    engine: undefined,
    versions: [],
    nodes: [],
    addresses: [],
    images: [],
    warnings: [],
    failure: undefined,
    logsDir: undefined,
  }
}
