import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterEach, expect, test } from 'vitest'
import { endStrays, startedByThis } from '../../src/lib/process.ts'

const children: ReturnType<typeof spawn>[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** A process that was started by what these variables say. */
async function sleeper(variables: Readonly<Record<string, string>>): Promise<ReturnType<typeof spawn>> {
  const child = spawn('sleep', ['60'], { env: { ...process.env, ...variables }, stdio: 'ignore' })
  children.push(child)
  await once(child, 'spawn')
  return child
}

test('what a program started that is gone itself is killed; what others started is not', async () => {
  const [[name]] = Object.entries(startedByThis()) as [[string, string]]
  const gone = spawn('true')
  await once(gone, 'close')
  const stray = await sleeper({ [name]: `${gone.pid}:1` })
  const mine = await sleeper(startedByThis())
  const foreign = await sleeper({})
  const ended = once(stray, 'exit')
  expect(await endStrays()).toBeGreaterThanOrEqual(1)
  expect(await ended).toEqual([null, 'SIGKILL'])
  expect([mine.exitCode, mine.signalCode, foreign.exitCode, foreign.signalCode]).toEqual([null, null, null, null])
})
