import type { Host } from './host/host.ts'
import type { Runner } from './lib/run.ts'

/** What a story touches the world by; main makes one for each verb, tests make their own. A leaf. */
export interface World {
  readonly host: Host
  readonly run: Runner
  /** Aborted when the job is cancelled; the runner has ended its commands by then. */
  readonly signal: AbortSignal
  /** Milliseconds since 1970. */
  readonly now: () => number
}
