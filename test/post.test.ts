import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Host } from '../src/host/host.ts'
import type { Result, Runner } from '../src/lib/run.ts'
import { post } from '../src/post.ts'
import { loadState, saveState } from '../src/state.ts'
import type { World } from '../src/world.ts'
import { aPlan } from './builders.ts'

let folder: string
let log: string[]
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'post-'))
  log = []
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A world with one use, whose engine never ends the removal of its containers. */
function world(
  status: 'success' | 'cancelled',
  stage: 'ready' | 'cancelled',
): { world: World; removing: Promise<void> } {
  const plan = aPlan({ options: { name: 'c' }, folder })
  saveState({ plan, stage })
  let begun = (): void => {}
  const removing = new Promise<void>(resolve => {
    begun = resolve
  })
  const answer = async ([, ...args]: readonly string[]): Promise<Result> => {
    if (args[0] === 'rm') {
      begun()
      return new Promise(() => {})
    }
    const stdout = args[1] === 'inspect' ? JSON.stringify(plan.labels) : args[0] === 'ps' ? 'n1\n' : ''
    return { code: 0, stdout, stderr: '' }
  }
  const note = (message: string): void => void log.push(message)
  const host = {
    ...{ name: 'buildkite', folder, env: {}, cancelLimit: 50, info: note, debug: note, warning: note },
    ...{ jobStatus: () => status, uses: async () => [plan.folder.slice(folder.length + 1)] },
    group: (_: string, work: () => Promise<unknown>) => work(),
  } as unknown as Host
  const run = { run: answer, try: answer } as unknown as Runner
  return { world: { host, run, signal: new AbortController().signal } as unknown as World, removing }
}

test.each([
  ['the job', 'cancelled', 'ready'],
  ['its pre', 'success', 'cancelled'],
] as const)(
  'where %s was cancelled, post leaves to the engine what takes longer than the host waits',
  async (_, status, stage) => {
    const { world: given, removing } = world(status, stage)
    await post(given)
    await removing
    expect(log).toEqual([expect.stringMatching(/^The engine has not removed all within 0\.1s, .* the next job/)])
    // So that it is found again.
    expect(loadState(aPlan({ options: { name: 'c' }, folder }).folder)).toBeDefined()
  },
)

test('where nobody cancelled it, post waits for the engine', async () => {
  const { world: given, removing } = world('success', 'ready')
  const ended = post(given).then(() => 'ended')
  await removing
  expect(await Promise.race([ended, new Promise(resolve => setTimeout(() => resolve('waits'), 150))])).toBe('waits')
})
