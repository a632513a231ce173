import { expect, test } from 'vitest'
import { beginRemoval } from '../../src/cluster/remove.ts'
import type { Docker } from '../../src/engine/docker.ts'
import type { Result } from '../../src/lib/run.ts'
import { aPlan } from '../builders.ts'

const plan = aPlan({ options: { name: 'c' } })

/** What an engine is asked to remove whose record has these labels, and that has these nodes. */
async function removed(labels: Readonly<Record<string, string>> | undefined, nodes: string): Promise<string[][]> {
  const asked: string[][] = []
  const answer = async (args: readonly string[]): Promise<Result> => {
    if (args[0] === 'rm') asked.push([...args])
    if (args[0] === 'ps') return { code: 0, stdout: nodes, stderr: '' }
    if (args[0] !== 'volume') return { code: 0, stdout: '', stderr: '' }
    return labels === undefined
      ? { code: 1, stdout: '', stderr: 'no such volume' }
      : { code: 0, stdout: JSON.stringify(labels), stderr: '' }
  }
  await beginRemoval({ run: answer, try: answer } as unknown as Docker, plan)
  return asked
}

test('the removal of a start that is cancelled begins with its nodes', async () => {
  expect(await removed(plan.labels, 'n1\nn2\n')).toEqual([['rm', '--force', '--volumes', 'n1', 'n2']])
})

test('it asks for nothing where there is no node yet', async () => {
  expect(await removed(plan.labels, '')).toEqual([])
})

test("it leaves another use's nodes alone, whose name this one was refused", async () => {
  expect(await removed(aPlan({ options: { name: 'c' }, unique: 'fedcba9876543210' }).labels, 'n1\n')).toEqual([])
  expect(await removed(undefined, 'n1\n')).toEqual([])
})
