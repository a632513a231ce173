/** The ways in which a job can end too early, as data: what is ended, when, how, and on which host. */

/** How far pre has come, in its order. */
export const STAGES = [
  'before the plan',
  'download',
  'pull',
  'network',
  'nodes',
  'kubeadm',
  'preload',
  'waiting',
  'just after ready',
] as const
export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGKILL'] as const
/** Pre's own process, what it runs alone, or the whole job with its hooks and steps. */
export const TARGETS = ['pre', 'children', 'group'] as const
export const HOSTS = ['github', 'buildkite'] as const

export type Stage = (typeof STAGES)[number]
export type Signal = (typeof SIGNALS)[number]
export type Target = (typeof TARGETS)[number]
export type HostName = (typeof HOSTS)[number]

/** One job that is ended too early. */
export interface Run {
  readonly stage: Stage
  readonly signal: Signal
  readonly target: Target
  readonly host: HostName
}

const on =
  (host: HostName) =>
  (stage: Stage, signal: Signal, target: Target): Run => ({ stage, signal, target, host })
const github = on('github')
const buildkite = on('buildkite')

/** The runs of every test: two for each stage, which are under way side by side. */
export const RUNS: readonly (readonly [Run, Run])[] = [
  [github('before the plan', 'SIGKILL', 'group'), buildkite('before the plan', 'SIGTERM', 'pre')],
  [github('download', 'SIGINT', 'pre'), buildkite('download', 'SIGKILL', 'group')],
  [github('pull', 'SIGTERM', 'children'), buildkite('pull', 'SIGKILL', 'pre')],
  [github('network', 'SIGKILL', 'pre'), buildkite('network', 'SIGINT', 'group')],
  [github('network', 'SIGTERM', 'pre'), buildkite('network', 'SIGKILL', 'group')],
  [github('nodes', 'SIGKILL', 'group'), buildkite('nodes', 'SIGINT', 'children')],
  [github('kubeadm', 'SIGKILL', 'children'), buildkite('kubeadm', 'SIGTERM', 'group')],
  [github('preload', 'SIGTERM', 'group'), buildkite('preload', 'SIGTERM', 'children')],
  [github('waiting', 'SIGTERM', 'pre'), buildkite('waiting', 'SIGKILL', 'group')],
  [github('just after ready', 'SIGKILL', 'group'), buildkite('just after ready', 'SIGKILL', 'group')],
]

/** The stages at which pre runs a command for sure: elsewhere there may be no children to signal. */
const WITH_CHILDREN: readonly Stage[] = ['pull', 'nodes', 'kubeadm', 'preload']

/** Whether there is anything to signal: when all is ready pre is gone, and the job is what is left to end. */
export function isThere({ stage, target }: Pick<Run, 'stage' | 'target'>): boolean {
  if (target === 'children') return WITH_CHILDREN.includes(stage)
  return stage !== 'just after ready' || target === 'group'
}

/** Whether nothing of the job is left that could run its post. */
export function endsAll({ signal, target }: Run): boolean {
  return signal === 'SIGKILL' && target === 'group'
}

/**
 * What becomes of a hook on Buildkite when the agent's job is killed: it runs in a session of its own. It goes on where the agent
 * gives it no terminal, hears a hangup where it does, and is killed too where all that runs in a container or machine is.
 */
export function hookOf({ stage }: Pick<Run, 'stage'>): 'goes on' | 'hears a hangup' | 'is killed too' {
  return (['is killed too', 'goes on', 'hears a hangup'] as const)[STAGES.indexOf(stage) % 3] ?? 'goes on'
}

/** Every run that makes sense. */
export const ALL_RUNS: readonly Run[] = STAGES.flatMap(stage =>
  HOSTS.flatMap(host =>
    SIGNALS.flatMap(signal => TARGETS.map(target => ({ stage, signal, target, host })).filter(isThere)),
  ),
)
