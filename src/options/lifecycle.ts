/** The options of the end: logs, summary, what stays and how long. Pure. */
import { boolean, duration, type Given, type Reader, show, text } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import type { Option } from './option.ts'

export const LIFECYCLE_OPTIONS: readonly Option[] = [
  {
    name: 'summary',
    schema: 'string',
    default: 'always on GitHub, on-failure on Buildkite',
    sentence:
      "When to show a summary (the job's on GitHub, an annotation on Buildkite): `always`, `on-failure` or `never`.",
  },
  {
    name: 'logs',
    schema: 'string',
    default: 'on-failure',
    sentence: "When to export the cluster's logs: `on-failure` (of its start or of the job), `always` or `never`.",
  },
  {
    name: 'logs-dir',
    schema: 'string',
    default: "a folder of the job's",
    sentence: 'Where to export them to: a folder, in which each cluster gets one of its name.',
  },
  {
    name: 'keep',
    schema: 'boolean',
    default: 'false',
    sentence: 'Leave the cluster up after the job, for a look. The log says how to remove it.',
  },
  {
    name: 'lifetime',
    schema: 'duration',
    default: '6h',
    sentence: 'How long after its start anyone may remove the cluster, kept or not; more than the job takes.',
  },
]

/** When logs are exported, and a summary is shown. */
export type When = 'on-failure' | 'always' | 'never'

export interface LifecycleOptions {
  /** Undefined for the host's own way. */
  readonly summary: When | undefined
  readonly logs: When
  readonly logsDir: string | undefined
  readonly keep: boolean
  /** Milliseconds. */
  readonly lifetime: number
}

export function readLifecycleOptions({ option }: Reader): LifecycleOptions {
  return {
    summary: option('summary', when, undefined),
    logs: option('logs', when, 'on-failure'),
    logsDir: option('logs-dir', text, undefined),
    keep: option('keep', boolean, false),
    lifetime: option('lifetime', lifetime, LIFETIME),
  }
}

const HOUR = 3_600_000

/** How long a job counts as one that may live, where it says nothing else, in milliseconds. */
export const LIFETIME = 6 * HOUR

function when(value: Given): When {
  const word = text(value)
  if (word !== 'on-failure' && word !== 'always' && word !== 'never') {
    throw new Problem(`${show(value)} is not one of on-failure, always and never`)
  }
  return word
}

/** No timer, so it may be longer than a job: a kept cluster is there for people. */
function lifetime(value: Given): number {
  const ms = duration(value, 720 * HOUR)
  if (ms < 60_000) throw new Problem(`${show(value)} is over before the cluster is up; at least 1m`)
  return ms
}
