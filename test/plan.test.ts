import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { clusterOfUse, validName } from '../src/plan.ts'
import { aPlan } from './builders.ts'

const hash = (given: string): string => createHash('sha256').update(given).digest('hex').slice(0, 6)

describe("a cluster's name", () => {
  test.each([
    ['e2e', 'e2e'],
    ['a', 'a'],
    ['my-app-2', 'my-app-2'],
    ['x'.repeat(40), 'x'.repeat(40)],
  ])('%j is taken as it is', (given, name) => {
    expect(aPlan({ options: { name: given } }).cluster).toBe(name)
  })

  test.each([
    ['My App', 'my-app'],
    ['-edge-', 'edge'],
    ['a.b_c/d', 'a-b-c-d'],
    ['ünïcode1', 'n-code1'],
    ['y'.repeat(41), 'y'.repeat(33)],
    [`${'z'.repeat(32)}-and more`, 'z'.repeat(32)],
  ])('%j had to change, and says so by a hash of what was given', (given, word) => {
    expect(aPlan({ options: { name: given } }).cluster).toBe(`${word}-${hash(given)}`)
  })

  test('names that become the same word stay apart', () => {
    expect(validName('my app')).not.toBe(validName('my_app'))
  })

  test('a name that was made valid is valid', () => {
    expect(validName(validName('My App'))).toBe(validName('My App'))
  })

  test.each([
    ['shop', 'shop-01234567'],
    ['Acme/Web Shop', 'acme-web-shop-01234567'],
    ['---', 'kind-01234567'],
    [`${'w'.repeat(23)}-${'w'.repeat(30)}`, `${'w'.repeat(23)}-01234567`],
  ])('where none is given it is a word of the job %j and something random', (label, name) => {
    expect(aPlan({ identity: { label } }).cluster).toBe(name)
  })

  test.each(['A'.repeat(200), `${'-'.repeat(100)}a`, `a${'.'.repeat(100)}b`, 'é'.repeat(50).concat('1')])(
    'it is a host name of at most 40 characters: %j',
    given => {
      for (const { cluster } of [aPlan({ options: { name: given } }), aPlan({ identity: { label: given } })]) {
        expect(cluster).toMatch(/^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$/)
      }
    },
  )
})

describe('the nodes are named as kind names them', () => {
  const roles = (...listed: (string | undefined)[]) => ({
    name: 'c',
    config: { nodes: listed.map(role => (role === undefined ? {} : { role })) },
  })

  test.each([
    ['one', { name: 'c' }, ['c-control-plane']],
    ['workers', { name: 'c', workers: 2 }, ['c-control-plane', 'c-worker', 'c-worker2']],
    ['a config', roles('control-plane', 'worker', 'worker'), ['c-control-plane', 'c-worker', 'c-worker2']],
    ['a config that starts with a worker', roles('worker', 'control-plane'), ['c-control-plane', 'c-worker']],
    [
      'several control planes between workers',
      roles('worker', 'control-plane', 'worker', 'control-plane', 'control-plane'),
      ['c-control-plane', 'c-control-plane2', 'c-control-plane3', 'c-worker', 'c-worker2'],
    ],
    ['a node without a role is a control plane', roles(undefined, 'worker'), ['c-control-plane', 'c-worker']],
    ['a config without nodes', { name: 'c', config: {}, workers: 1 }, ['c-control-plane', 'c-worker']],
    ['a config with an empty list', { ...roles(), workers: 1 }, ['c-control-plane', 'c-worker']],
    [
      'a cluster with the name of a role',
      { ...roles('worker', 'control-plane'), name: 'a-control-plane' },
      ['a-control-plane-control-plane', 'a-control-plane-worker'],
    ],
  ])('%s', (_, options, nodes) => {
    expect(aPlan({ options }).nodes).toEqual(nodes)
  })
})

test('what can carry labels says whose it is, which use made it and when anyone may remove it', () => {
  const now = Date.UTC(2026, 5, 1, 12, 0, 0, 999)
  const plan = aPlan({
    options: { name: 'e2e' },
    identity: { owner: 'runner-3/host', job: 'run-9/e2e/2' },
    unique: 'feedbeef00000000',
    now,
  })
  const sixHoursLater = Date.UTC(2026, 5, 1, 18) / 1000
  expect(plan.labels).toEqual({
    'kind-in-dind.cluster': 'e2e',
    'kind-in-dind.job': 'run-9/e2e/2',
    'kind-in-dind.use': 'feedbeef00000000',
    'kind-in-dind.owner': 'runner-3/host',
    'kind-in-dind.created': String(sixHoursLater - 6 * 3600),
    'kind-in-dind.expiry': String(sixHoursLater),
    'kind-in-dind.containers': 'control-plane',
    'kind-in-dind.network': 'kind-in-dind-e2e',
  })
  expect(plan).toMatchObject({ owner: 'runner-3/host', job: 'run-9/e2e/2', expiry: sixHoursLater })
})

test('whoever finds the labels can remove the cluster, and knows whether and until when it is to stay', () => {
  const { labels } = aPlan({
    options: { name: 'e2e', workers: 2, network: 'ci', keep: true, lifetime: 90_000 },
    now: 1_000_000,
    // An hour behind: all who look at one engine go by its clock.
    engine: { clockAhead: -3_600_000 },
  })
  expect(labels).toMatchObject({
    'kind-in-dind.kept': 'true',
    'kind-in-dind.containers': 'control-plane worker worker2',
    'kind-in-dind.network': 'ci',
    'kind-in-dind.created': String(1000 - 3600),
    'kind-in-dind.expiry': String(1000 - 3600 + 90),
  })
})

test("what is made on the engine carries the program's name and the cluster's", () => {
  expect(aPlan({ options: { name: 'e2e' } })).toMatchObject({ record: 'kind-in-dind-e2e', network: 'kind-in-dind-e2e' })
})

test("all files are in the use's own folder, unless the user chose one", () => {
  expect(aPlan({ folder: '/tmp/job', options: { name: 'e2e' } })).toMatchObject({
    folder: '/tmp/job/e2e.01234567',
    kubeconfig: '/tmp/job/e2e.01234567/kubeconfig',
    internalKubeconfig: '/tmp/job/e2e.01234567/kubeconfig-internal',
  })
  expect(aPlan({ folder: '/tmp/job', options: { name: 'e2e', kubeconfig: 'out/config' } })).toMatchObject({
    folder: '/tmp/job/e2e.01234567',
    kubeconfig: 'out/config',
    internalKubeconfig: '/tmp/job/e2e.01234567/kubeconfig-internal',
  })
})

test("a name that is derived is nobody else's, and the folder has it", () => {
  expect(aPlan().folder).toBe(`/job/${aPlan().cluster}`)
})

test('two uses of one name have folders of their own, since one of them has yet to hear that the name is taken', () => {
  const folders = ['aaaaaaaa', 'bbbbbbbb'].map(unique => aPlan({ options: { name: 'e2e' }, unique }).folder)
  expect(new Set(folders).size).toBe(2)
  expect(folders.map(folder => clusterOfUse(folder.replace('/job/', '')))).toEqual(['e2e', 'e2e'])
})

test("the config's name is the cluster's, unless the option says otherwise", () => {
  const config = { name: 'from-config' }
  expect(aPlan({ options: { config } }).cluster).toBe('from-config')
  expect(aPlan({ options: { config, name: 'from-option' } }).cluster).toBe('from-option')
})

test('it survives being saved', () => {
  const plan = aPlan({ options: { keep: true, workers: 1 } })
  expect(JSON.parse(JSON.stringify(plan))).toEqual(plan)
})

describe("the cluster's logs", () => {
  test.each([
    ["in the use's own folder", {}, undefined, '/job/c.01234567/logs/c'],
    ["in the user's folder, where clusters do not meet", { logsDir: '/out' }, undefined, '/out/c'],
    ['where the host lets them stay', {}, '/tmp/logs', '/tmp/logs/c'],
    ["in the user's folder on that host too", { logsDir: '/out' }, '/tmp/logs', '/out/c'],
  ])('are %s', (_, options, logsFolder, expected) => {
    expect(aPlan({ options: { name: 'c', ...options }, logsFolder }).logsDir).toBe(expected)
  })
})
