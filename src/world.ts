import type { Host } from './host/host.ts'
import type { Runner } from './lib/run.ts'
import type { Timeline } from './lib/timeline.ts'
import type { Report } from './report/report.ts'

/** What a story touches the world by; main makes one for each verb, tests make their own. A leaf. */
export interface World {
  readonly host: Host
  readonly run: Runner
  /** A runner whose commands no cancel ends, nor the end of this process. */
  readonly runAnyway: Runner
  /** Aborted when the job is cancelled; but for post's, the runner has ended its commands by then. */
  readonly signal: AbortSignal
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Where stages of the work are recorded. */
  readonly timeline: Timeline
  /** Where is noted what people are told at the end. */
  readonly report: Report
  /** Paths of the Node that runs this and of the program's command line: later commands of the job run it by these. */
  readonly self: { readonly node: string; readonly cli: string }
}
