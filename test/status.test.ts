import { expect, test } from 'vitest'
import { sortOut } from '../src/cluster/survey.ts'
import { statusLines } from '../src/report/status.ts'
import { toStatus } from '../src/status.ts'
import { anEngine, aPlan } from './builders.ts'

const NOW = Date.UTC(2026, 0, 1, 12)
const plan = aPlan({
  ...{ options: { name: 'mine', workers: 1 }, now: NOW - 60_000 },
  identity: { owner: 'runner-1@machine', job: 'job-2' },
})
const left = aPlan({
  ...{ options: { name: 'left' }, now: NOW - 3_600_000, unique: 'feedbeef00000000' },
  identity: { owner: 'runner-1@machine', job: 'job-1' },
})
const node = (name: string, kind: string, state = 'running') => ({
  ...{ id: name, name, kind, state, networks: '', labels: {} },
})

const status = toStatus(
  sortOut({
    volumes: [plan, left].map(({ record, labels }) => ({ id: record, name: record, labels })),
    networks: [{ id: 'n', name: plan.network, labels: plan.labels }],
    containers: [
      ...[node('mine-control-plane', 'mine'), node('mine-worker', 'mine', 'exited')],
      node('other-control-plane', 'other'),
    ],
  }),
  { owner: 'runner-1@machine', job: 'job-2' },
  NOW,
  {
    engine: anEngine({ address: 'tcp://user:secret@docker:2376', clockAhead: -3_600_000 }),
    ...{ host: 'github', own: '1.0.0', kind: 'v0.33.0', client: null, node: '24.1.0' },
  },
)

test('status says for programs what there is, whose it is, and what all versions are', () => {
  expect(status).toEqual({
    schema: 1,
    versions: {
      ...{ 'kind-in-dind': '1.0.0', kind: 'v0.33.0', 'docker-client': null, 'docker-engine': '28.5.1', node: '24.1.0' },
    },
    host: 'github',
    engine: {
      ...{ address: 'tcp://***@docker:2376', source: 'DOCKER_HOST', architecture: 'amd64', cpus: 2 },
      ...{ memory: 4 * 1024 ** 3, 'cgroup-version': '2', 'storage-driver': 'overlay2', 'clock-ahead': -3600 },
    },
    clusters: [
      {
        ...{ name: 'left', owner: 'runner-1@machine', job: 'job-1', 'this-job': false, kept: false, age: 3600 },
        ...{ created: '2026-01-01T11:00:00.000Z', expiry: '2026-01-01T17:00:00.000Z' },
        ...{ stale: 'left by the job job-1', nodes: [], others: [], 'half-gone': true },
      },
      {
        ...{ name: 'mine', owner: 'runner-1@machine', job: 'job-2', 'this-job': true, kept: false, age: 60 },
        ...{ created: '2026-01-01T11:59:00.000Z', expiry: '2026-01-01T17:59:00.000Z', stale: null },
        nodes: [
          { name: 'mine-control-plane', running: true },
          { name: 'mine-worker', running: false },
        ],
        ...{ others: ['kind-in-dind-mine'], 'half-gone': false },
      },
    ],
    foreign: [{ name: 'other', nodes: [{ name: 'other-control-plane', running: true }] }],
  })
})

test('and for people', () => {
  expect(statusLines(status)).toEqual([
    'Docker 28.5.1 at tcp://***@docker:2376, found by DOCKER_HOST: 2 CPUs, 4 GiB, amd64, overlay2, cgroup v2, its clock 1h00m behind',
    'kind-in-dind 1.0.0, kind v0.33.0, docker CLI none, Node 24.1.0, on github',
    'left: no node; 1h00m old, until 2026-01-01T17:00:00Z, not whole, left by the job job-1: down --stale removes it',
    '  of the job job-1 on runner-1@machine',
    "mine: 2 nodes, of which are down: mine-worker; this job's, 1m00s old, until 2026-01-01T17:59:00Z",
    '  of the job job-2 on runner-1@machine',
    'other: not one of kind-in-dind; 1 node up',
  ])
})
