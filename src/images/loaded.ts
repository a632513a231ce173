import { formatBytes } from '../lib/bytes.ts'
import { formatDuration } from '../lib/duration.ts'
import type { ImageFigures } from '../report/report.ts'

/** An image, and how it came into the nodes. */
export interface Loaded {
  /** As it was given. */
  readonly image: string
  /** How many nodes had it before. */
  readonly had: number
  /** How many nodes it was brought to. */
  readonly brought: number
  /** Bytes of its layers, for one node. Undefined where the source does not tell. */
  readonly size: number | undefined
  /** Bytes of layers that were sent for it, to all nodes together. Images that share a layer have it counted once. */
  readonly sent: number | undefined
  /** Milliseconds, together with those that came in the same read. */
  readonly took: number
}

/** The line that tells of an image: how it came, how many bytes of how many, how long it took. */
export function loadedLine({ image, had, brought, size, sent, took }: Loaded): string {
  if (brought === 0) return `${image}: every node had it`
  const whole = size === undefined ? '' : `, ${formatBytes(size)} each`
  const bytes =
    size === undefined || sent === undefined ? whole : `, sent ${formatBytes(sent)} of ${formatBytes(size * brought)}`
  const others = had === 0 ? '' : `, ${had} had it`
  return `${image}: ${loadedInto(brought)}${bytes} in ${formatDuration(took)}${others}`
}

/** The same for the summary. */
export function loadedFigures({ image, had, brought, size, sent, took }: Loaded): ImageFigures {
  if (brought === 0) return { reference: image, how: 'every node had it', bytes: size }
  const others = had === 0 ? '' : `, ${had} had it`
  return { reference: image, how: `${loadedInto(brought)}${others}`, bytes: size, sent, ms: took }
}

function loadedInto(nodes: number): string {
  return `loaded into ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`
}
