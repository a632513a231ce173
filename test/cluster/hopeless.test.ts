import { expect, test } from 'vitest'
import { hopeless } from '../../src/cluster/hopeless.ts'
import type { Docker } from '../../src/engine/docker.ts'

const times = { pause: 1, again: 1, answer: 1, silence: 40 }

/** Nodes whose kubelets have ended that often, one text for each time that they are asked; then the engine is silent. */
function nodesWith(counts: Readonly<Record<string, readonly string[]>>): Docker {
  const asked = new Map<string, number>()
  return {
    try: async ([, node = '']: readonly string[]) => {
      const time = asked.get(node) ?? 0
      asked.set(node, time + 1)
      const said = counts[node]?.[time]
      if (said === undefined) throw new Error('the engine did not finish in time')
      return { code: 0, stdout: `${said}\n`, stderr: '' }
    },
  } as unknown as Docker
}

test('a kubelet that systemd has started again and again', async () => {
  const docker = nodesWith({ a: ['0', '1', '0'], b: ['', '12', '30'] })
  expect(await hopeless(docker, ['a', 'b', 'silent'], new AbortController().signal, times)).toBe(
    'the kubelet on b does not start',
  )
})

test('an engine that is silent for a while', async () => {
  const docker = nodesWith({ a: ['0', '0'] })
  expect(await hopeless(docker, ['a'], new AbortController().signal, times)).toMatch(
    /^the engine has not answered for \S+; look at its log and its load$/,
  )
})

test('is watched for until the signal', async () => {
  const end = new AbortController()
  setTimeout(() => end.abort(), 20)
  expect(await hopeless(nodesWith({ a: [] }), ['a'], end.signal, { ...times, silence: 10_000 })).toBeUndefined()
})
