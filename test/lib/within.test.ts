import { expect, test } from 'vitest'
import { within } from '../../src/lib/within.ts'

const late = (): Error => new Error('late')

test('what comes in time is passed on, a failure too', async () => {
  expect(await within(60_000, Promise.resolve(7), late)).toBe(7)
  await expect(within(60_000, Promise.reject(new Error('no')), late)).rejects.toThrow('no')
})

test('what does not is said, and its own failure afterwards is nobody’s', async () => {
  let fail: (error: Error) => void = () => {}
  const work = new Promise<never>((_, reject) => {
    fail = reject
  })
  await expect(within(1, work, late)).rejects.toThrow('late')
  fail(new Error('much later'))
  await new Promise(resolve => setImmediate(resolve))
})
