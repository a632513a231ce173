import { expect, test } from 'vitest'
import { hostName, openHost } from '../../src/host/open.ts'
import type { Runner } from '../../src/lib/run.ts'

test.each([
  [{ GITHUB_ACTIONS: 'true' }, 'github'],
  [{ BUILDKITE: 'true' }, 'buildkite'],
  [{ GITHUB_ACTIONS: 'true', BUILDKITE: 'true' }, 'github'],
  [{ GITHUB_ACTIONS: 'true', KIND_IN_DIND_CI: 'buildkite' }, 'buildkite'],
  [{ CI: 'true' }, 'terminal'],
])('%j is %s', (env, name) => {
  expect(hostName(env)).toBe(name)
})

test('a command line is a terminal’s wherever it runs, and help needs nothing', () => {
  const opened = openHost('cli', { GITHUB_ACTIONS: 'true' }, ['--help'], {} as Runner)
  expect(opened).toEqual({ verb: 'help', usage: expect.stringContaining('kind-in-dind up') })
})
