/** What must hold of a job that was ended too early. Pure. */
import { endsAll, type Run, type Stage } from './ends-table.ts'

/** A job that was ended too early, as it looked when all of it was over. */
export interface Outcome {
  readonly cluster: string
  /** Of pre on GitHub, of the whole job on Buildkite; 128 + n where signal n ended it. */
  readonly code: number
  /** Pre's, and that of the post that followed it, where one did. */
  readonly log: string
  /** The log of the owner's next job, where the whole one was killed and nothing ran after it; else undefined. */
  readonly next: string | undefined
  /** Milliseconds from the signal to the end of the post that followed; on Buildkite of the whole job. */
  readonly over: number
  /** Milliseconds from the signal until the engine was removing something of the job's; undefined where it never was. */
  readonly removing: number | undefined
}

/** What the log of a job shows whose command ran. */
export const COMMAND_RAN = 'the command 21 runs'

/** What a job says whose children alone were ended: the first cause, in pre's own words. */
const CAUSES: Readonly<Partial<Record<Stage, RegExp>>> = {
  // The network is made while the pull begins: what of it was still under way is the first to end.
  pull: /node-image: the engine cannot pull |network: the engine cannot make the network \S+: it said nothing, ended by SIG/,
  nodes: /kind could not create the cluster: /,
  kubeadm: /kind could not create the cluster: /,
  preload: /images: /,
}

/** What a job says that got over it. */
const ALL_CAME = /: loaded into 1 node/

/** The line with which a job says what it removed of another's. */
export const LEFT = 'Removed what other jobs left on the engine: '

/** Buildkite's agent kills a cancelled job after ten seconds: by then the removal is long under way, and the job over. In milliseconds. */
export const CANCEL = { removing: 2000, over: 8000 }

/** What is not as it must be, a phrase each. */
export function judge(run: Run, { cluster, code, log, next, over, removing }: Outcome): string[] {
  const { stage, signal, target, host } = run
  const isReady = stage === 'just after ready'
  const hasRecord = stage !== 'before the plan' && stage !== 'download'
  // The agent hands every signal on to a hook as the one that cancels a job.
  const heard = host === 'buildkite' && target === 'group' && signal === 'SIGINT' ? 'SIGTERM' : signal
  const codeOf = { SIGINT: 130, SIGTERM: 143, SIGKILL: 137 }
  // It exits with the hook's code, or by the signal itself: either may come first. A command that was signalled has no code: -1.
  const ofAgent = isReady ? [255] : []
  const wanted =
    isReady && host === 'github'
      ? [0]
      : target === 'children'
        ? // An import that was ended is begun once more, and may be all that was.
          stage === 'preload'
          ? [0, 1]
          : [1]
        : [...new Set([codeOf[heard], codeOf[signal], ...ofAgent])]
  const cause =
    target === 'children'
      ? code === 0
        ? ALL_CAME
        : CAUSES[stage]
      : signal === 'SIGKILL' || isReady
        ? undefined
        : new RegExp(`Cancelled \\(${heard}\\)\\.`)
  const lines = (next ?? '').split('\n').filter(line => line.includes(LEFT))
  const told = lines.filter(line => line.includes(`${LEFT}${cluster} (`) && /: left by the job \S+$/.test(line))
  const isCancel = host === 'buildkite' && target === 'group' && signal !== 'SIGKILL'
  const found: readonly (readonly [boolean, string])[] = [
    [!wanted.includes(code), `its exit code is ${code}, not ${wanted.join(' or ')}`],
    [cause !== undefined && !cause.test(log), `it does not say ${cause}`],
    [log.includes(COMMAND_RAN) !== (isReady && host === 'buildkite'), 'its command ran, or did not'],
    ...(endsAll(run)
      ? ([
          [lines.length !== (hasRecord ? 1 : 0), `the next job says ${lines.length} times what it removed`],
          [told.length !== lines.length, `the next job says: ${lines.join('; ')}`],
        ] as const)
      : ([
          [hasRecord && !log.includes(`Removed ${cluster} (`), 'its post does not say what it removed'],
          [/::warning::|Warning: /.test(log), 'it warns'],
        ] as const)),
    [
      isCancel && hasRecord && !(removing !== undefined && removing < CANCEL.removing),
      `removal began after ${removing} ms`,
    ],
    [isCancel && over >= CANCEL.over, `it was over after ${Math.round(over)} ms`],
  ]
  return found.flatMap(([isWrong, phrase]) => (isWrong ? [phrase] : []))
}

/** What is there and was not, and what was there and is not. */
export function difference(before: readonly string[], after: readonly string[]): string[] {
  const without = (one: readonly string[], other: readonly string[]): string[] =>
    one.filter(line => !other.includes(line))
  return [
    ...without(after, before).map(line => `left: ${line}`),
    ...without(before, after).map(line => `gone: ${line}`),
  ]
}
