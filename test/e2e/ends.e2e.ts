/** Every way in which a job can end: afterwards all is as it was, on the engine, on the disk, and of processes. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createEnds, type Ends } from './ends.ts'
import { difference, judge, LEFT } from './ends-judge.ts'
import { RUNS, type Run } from './ends-table.ts'
import { annotations, signalProgram } from './github-job.ts'
import { docker } from './lab.ts'
import { prepare } from './place.ts'

let ends: Ends
let before: readonly string[]

beforeAll(async () => {
  ends = await createEnds()
})

afterAll(() => ends?.remove())

beforeEach(async () => {
  before = await ends.look()
})

describe.each(RUNS)('$stage', (...runs) => {
  const title = runs.map(({ signal, target, host }) => `${signal} to ${target} on ${host}`).join(', ')
  it(`${title}: nothing is left`, async () => {
    const outcomes = await Promise.all(runs.map(run => ends.run(run)))
    const left = difference(before, await ends.look())
    expect(left, outcomes.map(({ log, next }) => `${log}\n${next}`).join('\n\n')).toEqual([])
    for (const [index, outcome] of outcomes.entries()) {
      expect(judge(runs[index] as Run, outcome), `${outcome.log}\n${outcome.next}`).toEqual([])
    }
  })
})

describe('post', () => {
  it('while pre still runs, which heard of no signal: ends it, and leaves nothing', async () => {
    const { job, running, inputs, reached, cluster, release } = await ends.begin('nodes')
    await reached
    // Pre has not ended, so the runner has no state of it to hand over.
    const post = await job.post({ inputs, state: {} })
    const use = await running.ended
    await release()
    expect(post.code, post.log).toBe(0)
    expect(post.log).toContain('Ended the start of the cluster, which was still under way')
    expect(post.log).toContain(`Removed ${cluster} (`)
    expect(use.code, use.log).toBe(143)
    expect(difference(before, await ends.look()), post.log).toEqual([])
  })

  it('that is killed half-way, and run again: the second one removes what the first left', async () => {
    const { job, running, reached, cluster } = await ends.begin('kubeadm')
    await reached
    await running.signal('SIGTERM')
    const use = await running.ended
    const killed = job.post(use)
    const isKilled = ends.first(
      ({ Action, Actor }) => Action === 'kill' && Actor.Attributes['name'] === `${cluster}-control-plane`,
    )
    await isKilled
    await docker('pause', ends.sidecar.name)
    await signalProgram(ends.step, 'dist/post.js', 'SIGKILL')
    await docker('unpause', ends.sidecar.name)
    expect((await killed).code).toBe(137)
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(annotations(post, 'warning'), post.log).toEqual([])
    expect(difference(before, await ends.look()), post.log).toEqual([])
  })

  it('without state finds nothing to do, and the next job removes what there is', async () => {
    const { job, running, reached, inputs, cluster } = await ends.begin('network')
    await reached
    await running.signal('SIGKILL')
    await running.ended
    await prepare(ends.step, `rm -r ${job.env['RUNNER_TEMP']}/kind-in-dind`)
    const post = await job.post({ inputs, state: {} })
    expect(post.code, post.log).toBe(0)
    expect(post.log).toContain('There is no cluster to remove.')
    const next = await ends.next('github')
    expect(next).toContain(`${LEFT}${cluster} (`)
    expect(difference(before, await ends.look()), next).toEqual([])
  })

  it('after the engine was killed and started again: leaves nothing', async () => {
    const { job, running, reached, cluster } = await ends.begin('kubeadm')
    await reached
    await running.signal('SIGTERM')
    const use = await running.ended
    await ends.restart()
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(annotations(post, 'warning'), post.log).toEqual([])
    expect(post.log).toContain(`Removed ${cluster} (`)
    expect(difference(before, await ends.look()), post.log).toEqual([])
  })

  // The last one: there is no engine afterwards.
  it('after the engine went away: warns of it in time, and does not fail the job', async () => {
    const { job, running, reached } = await ends.begin('network')
    await reached
    await running.signal('SIGTERM')
    const use = await running.ended
    await docker('kill', ends.sidecar.name)
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(annotations(post, 'warning'), post.log).toEqual([
      expect.stringMatching(/^the engine does not tell what is left of the cluster: .*when it answers again/),
    ])
    expect(post.took).toBeLessThan(70_000)
  })
})
