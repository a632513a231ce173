import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
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

test.each([
  ['status --json', 'status'],
  ['down', 'post'],
  ['down --stale', 'down-stale'],
  ['down --stale=true --docker-host tcp://docker:2375', 'down-stale'],
  ['down --stale=false', 'post'],
])('%s is %s', (line, verb) => {
  const home = mkdtempSync(join(tmpdir(), 'open-'))
  try {
    expect(openHost('cli', { HOME: home, GITHUB_ACTIONS: 'true' }, line.split(' '), {} as Runner)).toMatchObject({
      verb,
      host: { name: 'terminal', within: 'github' },
    })
  } finally {
    rmSync(home, { recursive: true })
  }
})

test('an engine is named for what is over on it, not for a cluster of ours, which knows its own', () => {
  const home = mkdtempSync(join(tmpdir(), 'open-'))
  try {
    const open = () => openHost('cli', { HOME: home }, ['down', '--docker-host', 'tcp://docker:2375'], {} as Runner)
    expect(open).toThrow('--docker-host goes with --stale')
  } finally {
    rmSync(home, { recursive: true })
  }
})

test('a command line is a terminal’s wherever it runs, and help needs nothing', () => {
  const opened = openHost('cli', { GITHUB_ACTIONS: 'true' }, ['--help'], {} as Runner)
  expect(opened).toEqual({ verb: 'help', usage: expect.stringContaining('kind-in-dind up') })
})
