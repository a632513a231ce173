import { describe, expect, test } from 'vitest'
import { reap, staleness } from '../../src/cluster/reap.ts'
import type { Holding } from '../../src/cluster/survey.ts'
import type { Docker } from '../../src/engine/docker.ts'
import type { Result } from '../../src/lib/run.ts'
import { dockerThat, no, ok } from '../answers.ts'
import { aPlan } from '../builders.ts'

const HOUR = 3600
const NOW = 1_000_000
const me = { owner: 'runner-1', job: 'job-2' }

function holding(given: Partial<Holding> = {}): Holding {
  return {
    ...{ cluster: 'c', use: 'u', owner: 'runner-1', job: 'job-1', created: NOW - HOUR, expiry: NOW + HOUR },
    ...{ kept: false, network: 'kind-in-dind-c', planned: [], hasRecord: true },
    ...{ nodes: [], containers: [], networks: [], volumes: [] },
    ...given,
  }
}

describe('of what is on the engine', () => {
  test.each<[string, Partial<Holding>, string | undefined]>([
    ['what the owner left from another job goes', {}, 'left by the job job-1'],
    ['what this job has stays', { job: 'job-2' }, undefined],
    ['what this job has stays even past its expiry', { job: 'job-2', expiry: NOW - HOUR }, undefined],
    ['what a live job of another owner has stays', { owner: 'runner-2' }, undefined],
    ['what is expired goes, whosever it is', { owner: 'runner-2', expiry: NOW - HOUR }, 'expired 1h00m ago'],
    ['at its very expiry, too', { owner: 'runner-2', expiry: NOW }, 'expired 0.0s ago'],
    ['what was to be kept stays until its expiry', { kept: true }, undefined],
    ['what was to be kept goes at its expiry', { kept: true, expiry: NOW - 60 }, 'expired 1m00s ago'],
    ['what says neither owner nor expiry stays', { owner: '', expiry: undefined }, undefined],
  ])('%s', (_, given, why) => {
    expect(staleness(holding(given), me, NOW * 1000)).toBe(why)
  })

  test('nothing goes for an owner that has no name', () => {
    expect(staleness(holding({ owner: '' }), { owner: '', job: 'job-2' }, NOW * 1000)).toBeUndefined()
  })
})

const plan = aPlan({ options: { name: 'c' }, identity: { owner: 'runner-1', job: 'job-1' }, now: NOW * 1000 })
const line = (id: string, more: object = {}): string =>
  `${JSON.stringify({ id, name: id, labels: plan.labels, ...more })}\n`

/**
 * An engine with a cluster of one node.
 *
 * @param refusals of commands by their first words, each given once
 * @param record whether its record is there
 */
function engine(refusals: Record<string, Result> = {}, record = true) {
  const containers = new Set(['n1'])
  const volumes = new Set(record ? [plan.record] : [])
  const networks = new Set([plan.network])
  const asked: string[] = []
  const list = (of: Set<string>): Result => ok([...of].map(id => `${id}\n`).join(''))
  const answer = (args: readonly string[]): Result => {
    const said = args.join(' ')
    asked.push(said)
    const refused = Object.keys(refusals).find(start => said.startsWith(start))
    if (refused !== undefined) {
      const result = refusals[refused] as Result
      delete refusals[refused]
      return result
    }
    const isSurvey = said.includes('--format={ ')
    switch (`${args[0]} ${args[1]}`) {
      case 'ps --all':
        if (isSurvey)
          return ok(
            [...containers]
              .map(id => line(id, { kind: 'c', state: 'running', labels: {}, networks: plan.network }))
              .join(''),
          )
        return said.includes('io.x-k8s') || !said.includes('--filter') ? list(containers) : ok()
      case 'network ls':
        return isSurvey ? ok([...networks].map(id => line(id)).join('')) : list(networks)
      case 'volume ls':
        return isSurvey ? ok([...volumes].map(id => line(id)).join('')) : list(volumes)
      case 'volume inspect':
        return volumes.has(plan.record) ? ok(JSON.stringify(plan.labels)) : no('no such volume')
      case 'rm --force':
        containers.clear()
        return ok()
      case 'network rm':
        networks.clear()
        return ok()
      case 'volume rm':
        volumes.clear()
        return ok()
      default:
        return ok()
    }
  }
  const docker = dockerThat(async args => answer(args))
  return { docker, asked, left: () => [...containers, ...networks, ...volumes] }
}

const clock = (): number => NOW * 1000

describe('the removal', () => {
  test('takes the cluster, the record last, and says what and why', async () => {
    const { docker, asked, left } = engine()
    expect(await reap(docker, me, clock, 5000)).toMatchObject({
      removed: ['c (1 node and its network): left by the job job-1'],
      failed: [],
      uses: [{ cluster: plan.cluster, use: plan.use }],
    })
    expect(left()).toEqual([])
    expect(asked.filter(said => / rm |^rm /.test(said)).at(-1)).toBe(`volume rm --force ${plan.record}`)
  })

  test('asks only three questions where nothing is to be removed', async () => {
    const { docker, asked, left } = engine()
    expect(await reap(docker, { ...me, owner: 'runner-2' }, clock, 5000)).toEqual({ removed: [], failed: [], uses: [] })
    expect([asked.length, left().length]).toEqual([3, 3])
  })

  test('is content where another job is faster', async () => {
    const { docker } = engine({ 'volume inspect': no('Error: no such volume') })
    expect(await reap(docker, me, clock, 5000)).toMatchObject({ removed: [], failed: [] })
  })

  test.each([
    ['rm --force', 'Error response from daemon: removal of container n1 is already in progress'],
    ['rm --force', 'Error response from daemon: driver failed to remove root filesystem: device or resource busy'],
    ['network rm', 'Error response from daemon: network kind-in-dind-c has active endpoints'],
    ['volume rm', 'Error response from daemon: remove kind-in-dind-c: volume is in use'],
  ])('asks again where %s is refused once', async (command, refusal) => {
    const { docker, left } = engine({ [command]: no(refusal) })
    expect((await reap(docker, me, clock, 5000)).failed).toEqual([])
    expect(left()).toEqual([])
  })

  test.each([
    ['', {}],
    [
      ', also where another job removes it at the same time',
      { 'rm --force': no('Error response from daemon: removal of container n1 is already in progress') },
    ],
  ])('takes what is left of a cluster whose record is gone%s', async (_, refusals) => {
    const { docker, left } = engine(refusals, false)
    expect(await reap(docker, me, clock, 5000)).toMatchObject({
      removed: ['1 container, 1 network of c: left by the job job-1'],
      failed: [],
    })
    expect(left()).toEqual([])
  })

  test('that the engine refuses to the end is told with its words and with what to do', async () => {
    const { docker } = engine()
    const refusing: Docker = {
      ...docker,
      try: async args => (args[0] === 'rm' ? no('device or resource busy') : docker.try(args)),
    }
    const { removed, failed } = await reap(refusing, me, clock, 600)
    expect(removed).toEqual([])
    expect(failed).toEqual([
      expect.stringMatching(
        /^c: the engine did not remove n1 within \d\.\ds: device or resource busy; the next job on this engine tries again, and so does docker rm --force --volumes n1$/,
      ),
    ])
  })
})
