import type { CoreV1Event, V1Pod } from '@kubernetes/client-node'
import { describe, expect, test } from 'vitest'
import { isStuck, podReason, podTrouble } from '../../src/cluster/pods.ts'

const waiting = (reason: string, message = ''): V1Pod =>
  ({
    metadata: { uid: '1' },
    status: { phase: 'Pending', containerStatuses: [{ state: { waiting: { reason, message } } }] },
  }) as unknown as V1Pod

const unscheduled = (message: string, reason = 'Unschedulable'): V1Pod =>
  ({
    metadata: { uid: '1' },
    status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason, message }] },
  }) as V1Pod

const event = (given: Partial<CoreV1Event> & { uid?: string }): CoreV1Event =>
  ({ type: 'Warning', involvedObject: { uid: given.uid ?? '1' }, ...given }) as CoreV1Event

describe('a pod does not start by itself', () => {
  test.each<[string, V1Pod, boolean]>([
    ['with an image that is not to be had', waiting('ImagePullBackOff'), true],
    ['that crashes again and again', waiting('CrashLoopBackOff'), true],
    ['that no node can take', unscheduled('0/2 nodes are available: 2 Insufficient cpu.'), true],
    ['whose first pull failed: another follows', waiting('ErrImagePull'), false],
    ['that is being made', waiting('ContainerCreating'), false],
    ['of which nothing is known yet', { metadata: { uid: '1' } }, false],
  ])('%s', (_, pod, stuck) => {
    expect(isStuck(pod)).toBe(stuck)
  })

  test('where one container waits for another of its pod that does not', () => {
    const pod = {
      status: {
        initContainerStatuses: [{ state: { waiting: { reason: 'ImagePullBackOff' } } }],
        containerStatuses: [{ state: { waiting: { reason: 'PodInitializing' } } }],
      },
    } as unknown as V1Pod
    expect(isStuck(pod)).toBe(true)
  })
})

describe('its trouble', () => {
  const early = new Date('2026-01-01T00:00:00Z')
  const late = new Date('2026-01-01T00:01:00Z')
  const events = [
    event({ reason: 'BackOff', message: 'back-off', lastTimestamp: late }),
    event({ reason: 'Failed', message: 'no such image', lastTimestamp: early }),
    event({ reason: 'Pulling', message: 'pulling', lastTimestamp: early, type: 'Normal' }),
    event({ reason: 'Failed', message: "another pod's", lastTimestamp: late, uid: '2' }),
  ]

  test('is its state and each kind of warning', () => {
    expect(podTrouble(waiting('ImagePullBackOff', 'back-off'), events)).toBe(
      'ImagePullBackOff; back-off; Failed: no such image; BackOff: back-off',
    )
  })

  test('names how a container ended', () => {
    const pod = waiting('CrashLoopBackOff')
    const [status] = pod.status?.containerStatuses ?? []
    Object.assign(status ?? {}, { lastState: { terminated: { exitCode: 3 } } })
    expect(podTrouble(pod, [])).toBe('CrashLoopBackOff; it ended with exit code 3')
    Object.assign(status ?? {}, { lastState: { terminated: { exitCode: 137, reason: 'OOMKilled' } } })
    expect(podTrouble(pod, [])).toBe(
      'CrashLoopBackOff; it ended with exit code 137 (OOMKilled: it took more memory than its limit)',
    )
  })

  test("in short is its state and the last event, the scheduler's too, which has another time", () => {
    const scheduler = event({ reason: 'FailedScheduling', message: 'no cpu', eventTime: late as never })
    expect(podReason(unscheduled('no cpu'), [scheduler, ...events.slice(1, 3)])).toBe(
      'Pending; FailedScheduling: no cpu',
    )
  })
})
