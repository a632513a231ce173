import { constants } from 'node:os'
import type { Host } from './host/host.ts'
import type { Verb } from './host/open.ts'
import { tidyFolder } from './host/remembered.ts'
import { messageOf } from './lib/problem.ts'
import type { Runner } from './lib/run.ts'
import { createTimeline } from './lib/timeline.ts'
import { watchRunner } from './lib/watch-runner.ts'
import { tellingProgress } from './report/progress.ts'
import { newReport, type Report } from './report/report.ts'
import { summaryMarkdown } from './report/summary.ts'
import { shownStages } from './report/timeline.ts'
import type { World } from './world.ts'

/** How long a cancelled pre may take to end what it runs, in milliseconds: all is to be over within a second. */
const GRACE = 900

type Story = (world: World) => Promise<void>

/** What a verb is performed with; main fills it with the process's own. */
export interface Stage {
  readonly host: Host
  readonly stories: Readonly<Record<Verb, Story>>
  /** The node that runs this and the program's own command line, for a launcher. */
  readonly self: World['self']
  /** Makes the runner whose commands the signal ends. */
  readonly runner: (signal: AbortSignal) => Runner
  readonly now: () => number
  /** Hears of signals, and of errors that nobody caught. */
  readonly listen: (hear: (cause: NodeJS.Signals | Error) => void) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => void
}

/** Performs a verb. @returns the exit code */
export function perform(verb: Verb, stage: Stage): Promise<number> {
  if (verb === 'pre') return performPre(stage)
  if (verb === 'post') return performPost(stage)
  return performCommand(stage, stage.stories[verb])
}

/**
 * Performs pre. What was running when it failed or was cancelled is ended; on a terminal, where nothing else would, post follows.
 *
 * @returns the exit code: 0, 1 after a failure, 128 + n after signal n. A second signal exits at once.
 */
export async function performPre(stage: Stage): Promise<number> {
  const { host } = stage
  const notes = newNotes()
  const pre: Story = world =>
    tellingProgress({ ...notes, clock: () => performance.now(), info: world.host.info }, () => stage.stories.pre(world))
  const cause = await tell(stage, pre, notes)
  if (cause instanceof Error) {
    tellFailure(host, cause)
    notes.report.failure = messageOf(cause)
  }
  // Somebody who cancels has seconds, and knows why.
  if (typeof cause !== 'string') await showSummary(host, notes)
  if (cause === undefined) return 0

  if (host.name === 'terminal') {
    if ((await host.uses()).length > 0) await performPost({ ...stage, listen: () => {} })
    else tidyFolder(host.folder)
  }
  return typeof cause === 'string' ? signalCode(cause) : 1
}

/**
 * Performs a command of the job's between pre and post.
 *
 * @returns the exit code, as that of pre
 */
export async function performCommand(stage: Stage, story: Story): Promise<number> {
  const cause = await tell(stage, story)
  if (cause instanceof Error) {
    tellFailure(stage.host, cause)
    // Where there is no cluster any more, being asked for one made the job's folder again.
    tidyFolder(stage.host.folder)
  }
  return cause === undefined ? 0 : typeof cause === 'string' ? signalCode(cause) : 1
}

/**
 * Tells a story to its end, which a signal may bring about. What runs then, or after a failure, is ended.
 *
 * @returns what ended it early: a signal or the first error; undefined where it came to its own end
 */
async function tell(stage: Stage, story: Story, notes = newNotes()): Promise<NodeJS.Signals | Error | undefined> {
  const { now, self } = stage
  const host = noting(stage.host, notes.report)
  const cancel = new AbortController()
  const run = watchRunner(stage.runner(cancel.signal))
  let cause: NodeJS.Signals | Error | undefined
  let signals = 0
  const stopped = new Promise<void>(resolve => {
    stage.listen(heard => {
      if (typeof heard === 'string' && signals++ > 0) stage.exit(signalCode(heard))
      cause ??= heard
      cancel.abort()
      setTimeout(resolve, GRACE)
    })
  })
  try {
    const runAnyway = stage.runner(new AbortController().signal)
    await Promise.race([story({ host, run, runAnyway, signal: cancel.signal, now, self, ...notes }), stopped])
  } catch (thrown) {
    cause ??= thrown instanceof Error ? thrown : new Error(String(thrown))
  }
  if (cause === undefined) return undefined

  cancel.abort()
  await Promise.race([run.settled(), delay(GRACE), stopped])
  if (typeof cause === 'string') host.info(`Cancelled (${cause}).`)
  return cause
}

/**
 * Performs post. On a CI host its errors are warnings and never the job's result; a command line's are errors. It goes
 * on after a first signal, for nothing else would remove what is left; a second one exits at once.
 *
 * @returns the exit code
 */
export async function performPost(stage: Stage): Promise<number> {
  const { host } = stage
  const never = new AbortController().signal
  const hurry = new AbortController()
  const isCommand = host.name === 'terminal'
  let signalled = false
  try {
    const crashed = new Promise<never>((_, reject) => {
      stage.listen(heard => {
        if (typeof heard !== 'string') return reject(heard)
        if (signalled) return stage.exit(isCommand ? signalCode(heard) : 0)
        signalled = true
        hurry.abort()
        host.info(`${heard}: what was made is still being removed; a second signal leaves it.`)
      })
    })
    const { now, self, stories } = stage
    const run = stage.runner(never)
    await Promise.race([
      stories.post({ host, run, runAnyway: run, signal: hurry.signal, now, self, ...newNotes() }),
      crashed,
    ])
    return 0
  } catch (thrown) {
    if (isCommand) host.error(messageOf(thrown))
    else host.warning(messageOf(thrown))
    debugStack(host, thrown)
    return isCommand ? 1 : 0
  } finally {
    tidyFolder(host.folder)
  }
}

type Notes = Pick<World, 'timeline' | 'report'>

function newNotes(): Notes {
  return { timeline: createTimeline(() => performance.now()), report: newReport() }
}

/** The host, with its warnings noted for the summary. */
function noting(host: Host, report: Report): Host {
  return {
    ...host,
    warning: message => {
      report.warnings.push(message)
      host.warning(message)
    },
  }
}

/** Shows the summary as the option says, else as the host does. */
async function showSummary(host: Host, { report, timeline }: Notes): Promise<void> {
  const when = report.summary ?? host.summary.when
  const failed = report.failure !== undefined
  if (when === 'never' || (when === 'on-failure' && !failed)) return
  const style = failed ? 'error' : report.warnings.length > 0 ? 'warning' : 'success'
  const markdown = summaryMarkdown(report, shownStages(timeline.spans(), performance.now()), host.summary.draws)
  await host.showSummary({ cluster: report.cluster, style, markdown })
}

function tellFailure(host: Host, failure: Error): void {
  host.error(messageOf(failure))
  debugStack(host, failure)
}

function debugStack(host: Host, thrown: unknown): void {
  if (thrown instanceof Error && thrown.stack) host.debug(thrown.stack)
}

/** As a shell tells it. */
function signalCode(signal: NodeJS.Signals): number {
  return 128 + constants.signals[signal]
}

function delay(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms))
}
