import { describe, expect, test } from 'vitest'
import { OPTIONS } from '../src/options.ts'
import { parseGiven } from './builders.ts'
import { refusals } from './options/judge.ts'

// What each option takes and refuses: options/.

test('with nothing given everything has its default', () => {
  expect(parseGiven({})).toEqual({
    name: undefined,
    kindVersion: { kind: 'pinned' },
    nodeImage: { kind: 'default' },
    config: undefined,
    workers: 0,
    ports: [],
    images: [],
    pull: 'missing',
    builder: undefined,
    registry: undefined,
    registryMirrors: [],
    kubectlVersion: { kind: 'cluster' },
    wait: 300_000,
    dockerHost: undefined,
    dockerWait: 60_000,
    cpus: undefined,
    memory: undefined,
    host: undefined,
    network: undefined,
    kubeconfig: undefined,
    logs: 'on-failure',
    logsDir: undefined,
    keep: false,
    lifetime: 21_600_000,
    downloadUrls: {},
  })
})

test.each(['', '  ', '\n', null, undefined])('%j is as good as not given', value => {
  expect(parseGiven(Object.fromEntries(OPTIONS.map(({ name }) => [name, value])))).toEqual(parseGiven({}))
})

describe('what is no option, or is wrong beside another, is refused', () => {
  test.each([
    ['imagess: no such option; images is meant?', { imagess: 'app:ci' }],
    ['kind_version: no such option; kind-version is meant?', { kind_version: 'latest' }],
    ['frobnicate: no such option', { frobnicate: true }],
    ['abc: no such option', { abc: '1' }],
    ["registry, ports: both ask for the engine's port 5001", { registry: 5001, ports: '30080, 5001:30081' }],
  ])('%s', (sentence, given) => {
    expect(refusals(given)).toEqual([sentence])
  })
})

test('all that is wrong is said at once', () => {
  const given = {
    nope: 1,
    'kubernetes-version': 1.3,
    workers: -1,
    name: '!',
    ports: '0',
    config: 'missing.yaml',
    keep: 'maybe',
  }
  expect(refusals(given).map(sentence => sentence.split(':')[0])).toEqual(
    expect.arrayContaining(['nope', 'kubernetes-version', 'workers', 'name', 'ports', 'config', 'keep']),
  )
  expect(refusals(given)).toHaveLength(7)
})
