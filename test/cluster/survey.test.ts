import { expect, test } from 'vitest'
import { type Listed, sortOut } from '../../src/cluster/survey.ts'
import { aPlan } from '../builders.ts'

const plan = aPlan({ options: { name: 'c', workers: 1 } })
const { labels } = plan

const record: Listed = { id: plan.record, name: plan.record, labels }
const network: Listed = { id: 'n1', name: plan.network, labels }
const node = (role: string, given: Partial<Listed> = {}): Listed => ({
  ...{ id: `id-${role}`, name: `c-${role}`, state: 'running', kind: 'c', networks: plan.network, labels: {} },
  ...given,
})
const none = { containers: [], networks: [], volumes: [] }

test('all that a use has is found from its record, the nodes too, which carry kind’s label alone', () => {
  const registry: Listed = { id: 'r', name: 'c-registry', state: 'running', kind: '', networks: plan.network, labels }
  const cache: Listed = { id: 'c-cache', name: 'c-cache', labels }
  const { holdings, foreign } = sortOut({
    volumes: [cache, record],
    networks: [network],
    containers: [node('control-plane'), node('worker', { state: 'exited' }), registry],
  })
  expect(foreign).toEqual([])
  expect(holdings).toEqual([
    {
      ...{ cluster: 'c', use: plan.use, owner: plan.owner, job: plan.job, expiry: plan.expiry },
      ...{ created: plan.expiry - 6 * 3600, kept: false, hasRecord: true },
      ...{ network: plan.network, planned: ['c-control-plane', 'c-worker'] },
      nodes: [
        { id: 'id-control-plane', name: 'c-control-plane', running: true },
        { id: 'id-worker', name: 'c-worker', running: false },
      ],
      containers: [{ id: 'r', name: 'c-registry' }],
      networks: [{ id: 'n1', name: plan.network }],
      volumes: [{ id: 'c-cache', name: 'c-cache' }],
    },
  ])
})

test('nodes without a record are somebody else’s', () => {
  const { holdings, foreign } = sortOut({ ...none, containers: [node('control-plane', { networks: 'kind' })] })
  expect(holdings).toEqual([])
  expect(foreign).toEqual([
    { cluster: 'c', nodes: [{ id: 'id-control-plane', name: 'c-control-plane', running: true }] },
  ])
})

test('where the record is gone, only nodes on the use’s own network are its', () => {
  const found = { ...none, networks: [network] }
  const its = sortOut({ ...found, containers: [node('worker')] })
  expect(its.holdings[0]).toMatchObject({ hasRecord: false, owner: plan.owner, nodes: [{ name: 'c-worker' }] })
  const foreign = sortOut({ ...found, containers: [node('worker', { networks: 'kind' })] })
  expect([foreign.holdings[0]?.nodes, foreign.foreign[0]?.cluster]).toEqual([[], 'c'])
})

test('what is left of two uses of one name stays apart', () => {
  const other = aPlan({ options: { name: 'c' }, unique: 'feedbeef00000000' })
  const { holdings } = sortOut({
    ...none,
    volumes: [record],
    networks: [{ id: 'n2', name: 'c', labels: other.labels }],
    containers: [node('control-plane')],
  })
  expect(holdings.map(({ use, hasRecord, nodes }) => [use, hasRecord, nodes.length])).toEqual([
    [plan.use, true, 1],
    [other.use, false, 0],
  ])
})

test('labels that are damaged tell nothing', () => {
  const { holdings } = sortOut({
    ...none,
    volumes: [{ ...record, labels: { 'kind-in-dind.cluster': 'c', 'kind-in-dind.expiry': 'soon' } }],
  })
  expect(holdings[0]).toMatchObject({ owner: '', job: '', expiry: undefined, kept: false, planned: [] })
})
