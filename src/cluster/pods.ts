/** Why a pod is not ready, in the cluster's own words. Pure. */
import type { CoreV1Event, V1ContainerStatus, V1Pod } from '@kubernetes/client-node'

export const isNotReady = (pod: V1Pod): boolean =>
  !pod.status?.conditions?.some(condition => condition.type === 'Ready' && condition.status === 'True')

/** Its state and what was last reported of it. */
export function podReason(pod: V1Pod, events: readonly CoreV1Event[]): string {
  const waiting = waitingOf(pod)
  const last = eventsOf(pod, events).at(-1)
  return parts([waiting?.reason ?? pod.status?.phase, waiting?.message, last && told(last)])
}

/** Its state with every kind of warning that was reported of it, the latest of each. */
export function podTrouble(pod: V1Pod, events: readonly CoreV1Event[]): string {
  const waiting = waitingOf(pod)
  const ended = statuses(pod).find(status => status.lastState?.terminated)?.lastState?.terminated
  const warnings = eventsOf(pod, events).filter(event => event.type === 'Warning')
  const latest = [...new Map(warnings.map(event => [event.reason, told(event)])).values()]
  return parts([
    waiting?.reason ?? pod.status?.phase,
    waiting?.message,
    ended &&
      `it ended with exit code ${ended.exitCode}${ended.reason === 'OOMKilled' ? ' (OOMKilled: it took more memory than its limit)' : ''}`,
    ...latest,
  ])
}

/** States of a container that do not become better by waiting (kubelet's pkg/kubelet/images and kuberuntime). */
const STUCK = [
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'CrashLoopBackOff',
]

/** Whether a pod will not start by itself, on nodes that take pods. */
export function isStuck(pod: V1Pod): boolean {
  const scheduled = pod.status?.conditions?.find(condition => condition.type === 'PodScheduled')
  const isUnschedulable = scheduled?.status === 'False' && scheduled.reason === 'Unschedulable'
  return isUnschedulable || STUCK.includes(waitingOf(pod)?.reason ?? '')
}

function statuses(pod: V1Pod): readonly V1ContainerStatus[] {
  return [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])]
}

function waitingOf(pod: V1Pod) {
  const waiting = statuses(pod).flatMap(status => status.state?.waiting ?? [])
  // A container that waits for another one of its pod says less than that one.
  return waiting.find(state => STUCK.includes(state.reason ?? '')) ?? waiting[0]
}

function eventsOf(pod: V1Pod, events: readonly CoreV1Event[]): CoreV1Event[] {
  // The scheduler's events have no lastTimestamp.
  const time = (event: CoreV1Event): number => Number(event.lastTimestamp ?? event.eventTime ?? 0)
  return events.filter(event => event.involvedObject.uid === pod.metadata?.uid).sort((a, b) => time(a) - time(b))
}

const told = (event: CoreV1Event): string => withoutPreemption(`${event.reason}: ${event.message}`)

/** What the scheduler says, without what it found out about taking other pods' places, which is nothing where there are none. */
export function withoutPreemption(message: string): string {
  return message.replace(/ (?:no new claims to deallocate, )?preemption: .*/s, '')
}

function parts(found: readonly (string | undefined)[]): string {
  return [...new Set(found.filter(part => part !== undefined && part !== ''))].join('; ')
}
