/** RESULTS.md from what was seen. Pure. */
import { CANCEL } from '../e2e/ends-judge.ts'
import type { Run } from '../e2e/ends-table.ts'

/** A job that was ended too early, and what was wrong with it. */
export interface RowResult {
  readonly run: Run
  readonly wrong: readonly string[]
}

/** What an engine and its container hold. */
export type Figures = Readonly<Record<(typeof FIGURES)[number], number>>

export const FIGURES = [
  'containers',
  'networks',
  'volumes',
  'images',
  'mounts',
  'links',
  'iptables rules',
  'processes',
  'file descriptors',
  'disk (KiB)',
] as const

/** By how much a figure may be more after all rounds than after the first: an engine's own, which go up and down. */
const NOISE: Readonly<Partial<Figures>> = { processes: 3, 'file descriptors': 20, 'disk (KiB)': 4096 }

export interface Crowd {
  /** Jobs at once, and in a row. */
  readonly jobs: number
  readonly killed: number
  readonly wrong: readonly string[]
  /** Milliseconds from pre's start to the end of post, of the jobs that nobody ended. */
  readonly took: readonly number[]
}

/** Cancels on Buildkite while some processes keep the machine busy. */
export interface Cancels {
  /** How many. */
  readonly busy: number
  /** Milliseconds from the signal until the engine removes something, and until the job is over. */
  readonly removing: readonly number[]
  readonly over: readonly number[]
  readonly wrong: readonly string[]
}

/** What is kept of the parts: one may run again alone. */
export interface Results {
  readonly rows?: Dated & { readonly results: readonly RowResult[]; readonly of: number }
  readonly rounds?: Dated & { readonly figures: readonly Figures[]; readonly wrong: readonly string[] }
  readonly crowd?: Dated & { readonly atOnce: Crowd; readonly inARow: Crowd }
  readonly cancel?: Dated & { readonly loads: readonly Cancels[] }
}

interface Dated {
  /** On what it ran, when, and with which versions. */
  readonly on: string
}

/** What did not hold, a phrase each. */
export function failures({ rows, rounds, crowd, cancel }: Results): string[] {
  return [
    ...(rows?.results ?? []).flatMap(({ run, wrong }) => wrong.map(what => `${title(run)}: ${what}`)),
    ...(rounds?.wrong ?? []),
    ...(rounds === undefined ? [] : growth(rounds.figures)),
    ...(crowd === undefined ? [] : [...crowd.atOnce.wrong, ...crowd.inARow.wrong]),
    ...(cancel?.loads ?? []).flatMap(({ busy, removing, over, wrong }) => [
      ...wrong,
      ...(Math.max(...removing) < CANCEL.removing
        ? []
        : [`with ${busy} busy processes a removal began after ${most(removing)}`]),
      ...(Math.max(...over) < CANCEL.over ? [] : [`with ${busy} busy processes a job was over after ${most(over)}`]),
    ]),
  ]
}

/** What grew from the first round to the last by more than an engine's own ups and downs, a phrase each. */
export function growth(figures: readonly Figures[]): string[] {
  const [, first] = figures
  const last = figures.at(-1)
  if (first === undefined || last === undefined) return []
  return FIGURES.flatMap(name =>
    last[name] - first[name] > (NOISE[name] ?? 0) ? [`${name} grew from ${first[name]} to ${last[name]}`] : [],
  )
}

export function markdown(results: Results): string {
  const { rows, rounds, crowd, cancel } = results
  const found = failures(results)
  return `# What is left

Written by \`npm run soak\`. A listing before and after has containers, networks, volumes, images, the files of runner and agent, and processes.

${found.length === 0 ? (isWhole(results) ? 'All of it held.' : 'What ran held.') : `**Not all of it held:**\n\n${found.map(what => `- ${what}`).join('\n')}`}

## Every way to end a job

${rows === undefined ? NOT_RUN : rowsText(rows)}

## Rounds on one engine

${rounds === undefined ? NOT_RUN : roundsText(rounds)}

## Many jobs

${crowd === undefined ? NOT_RUN : crowdText(crowd)}

## A cancel on Buildkite

${cancel === undefined ? NOT_RUN : cancelText(cancel)}
`
}

/** Whether every part ran, with all of its jobs. */
function isWhole({ rows, rounds, crowd, cancel }: Results): boolean {
  return rows?.results.length === rows?.of && [rows, rounds, crowd, cancel].every(part => part !== undefined)
}

const NOT_RUN = 'Not run.'

function rowsText({ results, of, on }: NonNullable<Results['rows']>): string {
  const bad = results.filter(({ wrong }) => wrong.length > 0).length
  const stages = [...new Set(results.map(({ run }) => run.stage))]
  const cells = stages.map(stage => {
    const its = results.filter(({ run }) => run.stage === stage)
    const good = (host: Run['host']): string => {
      const here = its.filter(({ run }) => run.host === host)
      return `${here.filter(({ wrong }) => wrong.length === 0).length} of ${here.length}`
    }
    return [stage, good('github'), good('buildkite')]
  })
  return `A job is ended at each stage by SIGINT, SIGTERM and SIGKILL, to pre, to its children alone where it has any for sure, and to the whole job;
where the whole job is killed, the next one of that runner or agent cleans up. ${results.length} of the ${of} ran, ${results.length - bad} as they must.

${table(['stage', 'GitHub', 'Buildkite'], cells)}

${on}`
}

function roundsText({ figures, on }: NonNullable<Results['rounds']>): string {
  const shown = [...new Set([0, 1, Math.floor((figures.length - 1) / 2), figures.length - 1])]
  const cells = FIGURES.map(name => [name, ...shown.map(round => `${figures[round]?.[name]}`)])
  return `A cluster is started, used and removed ${figures.length - 1} times, each by another job; an engine's figures in its container, after each round.

${table(['', ...shown.map(round => (round === 0 ? 'before' : `after ${round}`))], cells)}

${on}`
}

function crowdText({ atOnce, inARow, on }: NonNullable<Results['crowd']>): string {
  const cells = [
    ['at once', atOnce],
    ['in a row, two at a time', inARow],
  ] as const
  return `Jobs on one engine; of those in a row one in five is killed with all that it runs, at another stage each time.

${table(
  ['jobs', 'how', 'killed', 'not as they must', 'one takes'],
  cells.map(([how, { jobs, killed, wrong, took }]) => [
    `${jobs}`,
    how,
    `${killed}`,
    `${wrong.length}`,
    took.length === 0 ? '' : `${seconds(Math.min(...took))} to ${most(took)}`,
  ]),
)}

${on}`
}

function cancelText({ loads, on }: NonNullable<Results['cancel']>): string {
  const cells = loads.map(({ busy, removing, over }) => [
    `${busy}`,
    `${over.length}`,
    `${seconds(Math.min(...removing))} to ${most(removing)}`,
    `${seconds(Math.min(...over))} to ${most(over)}`,
  ])
  return `The agent signals the job while kubeadm is at work, and other processes keep the machine busy. The removal must be under way within 2 s,
and the job over, or the rest left to the engine, within 8 s.

${table(['busy processes', 'cancels', 'removal under way after', 'job over after'], cells)}

${on}`
}

function title({ stage, signal, target, host }: Run): string {
  return `${stage}, ${signal} to ${target} on ${host}`
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
const most = (ms: readonly number[]): string => seconds(Math.max(...ms))

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
