import { expect, test } from 'vitest'
import { createRunner } from '../../src/lib/run.ts'
import { watchRunner } from '../../src/lib/watch-runner.ts'

test('settled waits for commands that nobody awaits, however they end', async () => {
  const abort = new AbortController()
  const runner = watchRunner(createRunner({ env: process.env, signal: abort.signal }))
  const ends: string[] = []
  const note = (name: string) => (): void => void ends.push(name)
  runner.run(['sleep', '60']).catch(note('run'))
  runner.try(['sleep', '60']).catch(note('try'))
  runner.start(['sleep', '60']).ended.catch(note('start'))
  abort.abort()
  await runner.settled()
  expect(ends.sort()).toEqual(['run', 'start', 'try'])
})

test('results and failures pass through', async () => {
  const runner = watchRunner(createRunner({ env: process.env }))
  expect((await runner.try(['sh', '-c', 'echo hello; exit 3'])).code).toBe(3)
  await expect(runner.run(['false'])).rejects.toThrow('exit code 1')
  await runner.settled()
})
