import { expect, test } from 'vitest'
import { endedNodes } from '../../src/cluster/ended-nodes.ts'
import type { Docker } from '../../src/engine/docker.ts'

const docker = (stdout: string): Docker =>
  ({ try: async () => ({ code: 0, stdout, stderr: '' }) }) as Partial<Docker> as Docker

test.each<[string, string, readonly string[]]>([
  ['nodes that run are not told of', '/c-control-plane|running|0|false\n/c-worker|running|0|false\n', []],
  [
    'a node that ran out of memory is, with what to do',
    '/c-control-plane|exited|137|true\n/c-worker|running|0|false\n',
    ['node c-control-plane: exited, it ran out of memory: give the engine more, or run less'],
  ],
  [
    'so is one in which a program ran out of memory while it goes on itself',
    '/c-control-plane|running|0|true\n',
    ['node c-control-plane: running, it ran out of memory: give the engine more, or run less'],
  ],
  [
    'a node that ended otherwise is told with its exit code',
    '/c-worker|exited|1|false\n',
    ['node c-worker: exited, exit code 1'],
  ],
  ['nodes that were never made are not told of', '', []],
])('%s', async (_, stdout, sentences) => {
  expect(await endedNodes(docker(stdout), { nodes: ['c-control-plane', 'c-worker'] })).toEqual(sentences)
})
