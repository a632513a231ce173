import { constants } from 'node:os'
import type { Host } from './host/host.ts'
import { tidyFolder } from './host/remembered.ts'
import { messageOf } from './lib/problem.ts'
import type { Runner } from './lib/run.ts'
import { watchRunner } from './lib/watch-runner.ts'
import type { World } from './world.ts'

/** How long a cancelled pre may take to end what it runs, in milliseconds: all is to be over within a second. */
const GRACE = 900

/** What a verb is performed with; main fills it with the process's own. */
export interface Stage {
  readonly host: Host
  readonly pre: (world: World) => Promise<void>
  readonly post: (world: World) => Promise<void>
  /** Makes the runner whose commands the signal ends. */
  readonly runner: (signal: AbortSignal) => Runner
  readonly now: () => number
  /** Hears of signals, and of errors that nobody caught. */
  readonly listen: (hear: (cause: NodeJS.Signals | Error) => void) => void
  /** Ends the process at once. */
  readonly exit: (code: number) => void
}

/**
 * Performs pre. What was running when it failed or was cancelled is ended; on a terminal, where nothing else would, post follows.
 *
 * @returns the exit code: 0, 1 after a failure, 128 + n after signal n. A second signal exits at once.
 */
export async function performPre(stage: Stage): Promise<number> {
  const { host } = stage
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
    await Promise.race([stage.pre({ host, run, signal: cancel.signal, now: stage.now }), stopped])
  } catch (thrown) {
    cause ??= thrown instanceof Error ? thrown : new Error(String(thrown))
  }
  if (cause === undefined) return 0

  cancel.abort()
  await Promise.race([run.settled(), delay(GRACE), stopped])
  if (typeof cause === 'string') host.info(`Cancelled (${cause}).`)
  else await tellFailure(host, cause)
  if (host.name === 'terminal') {
    if ((await host.uses()).length > 0) await performPost({ ...stage, listen: () => {} })
    else tidyFolder(host.folder)
  }
  return typeof cause === 'string' ? signalCode(cause) : 1
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
  const isCommand = host.name === 'terminal'
  let signalled = false
  try {
    const crashed = new Promise<never>((_, reject) => {
      stage.listen(heard => {
        if (typeof heard !== 'string') return reject(heard)
        if (signalled) return stage.exit(isCommand ? signalCode(heard) : 0)
        signalled = true
        host.info(`${heard}: what was made is still being removed; a second signal leaves it.`)
      })
    })
    await Promise.race([stage.post({ host, run: stage.runner(never), signal: never, now: stage.now }), crashed])
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

async function tellFailure(host: Host, failure: Error): Promise<void> {
  host.error(messageOf(failure))
  debugStack(host, failure)
  await host.reportFailure('kind-in-dind could not start the cluster', messageOf(failure))
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
