import { describe, expect, test } from 'vitest'
import { beginPods, type PatchStep, type Workload } from '../../src/cluster/begin-pods.ts'

const probe = { exec: { command: ['buildctl', 'debug', 'workers'] }, initialDelaySeconds: 5, periodSeconds: 30 }
const toleration = (key: string) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10 })
const OURS = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'].map(toleration)

function workload(pod: object = {}, container: object = {}): Workload {
  return { spec: { replicas: 0, template: { spec: { containers: [{ name: 'buildkitd', ...container }], ...pod } } } }
}

/** What a patch makes of a workload, as far as ours has need of it: RFC 6902, for objects. */
function patched(of: Workload, steps: readonly PatchStep[]) {
  const result = structuredClone(of) as Record<string, unknown>
  const parent = (path: string): [Record<string, unknown>, string] => {
    const keys = path.slice(1).split('/')
    const last = keys.pop() ?? ''
    return [keys.reduce((object, key) => object[key] as Record<string, unknown>, result), last]
  }
  for (const step of steps) {
    const [object, key] = parent(step.path)
    if (step.op === 'add') object[key] = step.value
    else {
      const [from, old] = parent(step.from)
      object[key] = from[old]
      delete from[old]
    }
  }
  return result as typeof of
}

test('the pods begin, as many as were asked for', () => {
  expect(patched(workload(), beginPods(workload(), 3)).spec?.replicas).toBe(3)
})

describe('the first container', () => {
  test('is ready as soon as it answers', () => {
    const given = workload({}, { readinessProbe: probe, livenessProbe: { ...probe } })
    const [container] = patched(given, beginPods(given, 1)).spec?.template.spec?.containers ?? []
    expect(container).toEqual({
      name: 'buildkitd',
      startupProbe: { ...probe, initialDelaySeconds: 0, periodSeconds: 1, failureThreshold: 95 },
      livenessProbe: probe,
    })
  })

  test.each([{}, { readinessProbe: probe, startupProbe: probe }])('stays what it is with %j', container => {
    const given = workload({}, container)
    expect(patched(given, beginPods(given, 1)).spec?.template.spec?.containers).toEqual(
      given.spec?.template.spec?.containers,
    )
  })
})

test.each([
  [undefined, OURS],
  [[{ key: 'disk', operator: 'Exists' }], [{ key: 'disk', operator: 'Exists' }, ...OURS]],
  [[{ key: 'node.kubernetes.io/not-ready' }], [{ key: 'node.kubernetes.io/not-ready' }, OURS[1]]],
  [[{ operator: 'Exists' }], [{ operator: 'Exists' }]],
])('pods with the tolerations %j leave a node that is lost', (tolerations, expected) => {
  const given = workload({ tolerations })
  expect(patched(given, beginPods(given, 1)).spec?.template.spec?.tolerations).toEqual(expected)
})
