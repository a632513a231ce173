import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { takingStdout } from '../../src/lib/stdout.ts'

let written: string[]
const original = process.stdout.write

beforeEach(() => {
  written = []
  vi.resetModules()
  process.stdout.write = ((text: string) => written.push(text) > 0) as typeof original
})

afterEach(() => {
  process.stdout.write = original
})

/** A fresh copy of the module, over the stdout of this test. */
async function fresh(): Promise<typeof takingStdout> {
  return (await import('../../src/lib/stdout.ts')).takingStdout
}

test('work’s writes are taken, now and after an await, and its result is handed on', async () => {
  const taking = await fresh()
  const taken: string[] = []
  const result = await taking(
    text => void taken.push(text),
    async () => {
      process.stdout.write('one')
      await new Promise(resolve => setImmediate(resolve))
      await new Promise<void>(resolve => process.stdout.write('two', () => resolve()))
      return 42
    },
  )
  expect(result).toBe(42)
  expect(taken).toEqual(['one', 'two'])
  expect(written).toEqual([])
})

test('others write as ever in the meantime, and afterwards', async () => {
  const taking = await fresh()
  const taken: string[] = []
  let go = (): void => {}
  const work = taking(
    text => void taken.push(text),
    async () => {
      await new Promise<void>(resolve => {
        go = resolve
      })
      process.stdout.write('work')
    },
  )
  process.stdout.write('other')
  go()
  await work
  process.stdout.write('after')
  expect(taken).toEqual(['work'])
  expect(written).toEqual(['other', 'after'])
})

test('who takes may write to stdout', async () => {
  const taking = await fresh()
  taking(
    text => void process.stdout.write(`taken: ${text}`),
    () => process.stdout.write('x'),
  )
  expect(written).toEqual(['taken: x'])
})
