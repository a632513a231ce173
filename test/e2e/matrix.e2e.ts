/**
 * Four cells of a matrix on one engine, all at once, and two clusters in one job: nothing is shared that must not be, and
 * each goes without the others.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { kindPath, kubectlPath } from '../release-page.ts'
import { type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createPlace, type Ended, type Place } from './place.ts'
import { NODE_PORT } from './web.ts'

const { node, nodeContainerd2 } = names.images

const config = (ipFamily: string): string =>
  JSON.stringify({ kind: 'Cluster', apiVersion: 'kind.x-k8s.io/v1alpha4', networking: { ipFamily } })
/**
 * Two cells have a network each, as is the default, one of them for pods of IPv6 alone (which the other node image of the lab
 * has no network for) and one for both families; two have the one that they name, which neither finds there.
 */
const CELLS = [
  { config: config('ipv6'), 'node-image': nodeContainerd2 },
  { config: config('dual') },
  { network: 'cells' },
  { network: 'cells' },
] as const
/** The user's own, which was there before. */
const EXISTING = 'theirs'

let place: Place
let before: readonly string[]
let jobs: readonly GitHubJob[]
let uses: readonly Use[]
let inputs: Readonly<Record<string, string>>

beforeAll(async () => {
  place = await createPlace({ tls: false, images: [node, nodeContainerd2] })
  await place.docker('network', 'create', EXISTING)
  before = await listing(place.docker)
  const { kind, kubectl } = place.page.templates
  inputs = {
    'node-image': node,
    'download-url': `kind=${kind},kubectl=${kubectl}`,
    ports: `${NODE_PORT}`,
    wait: '7m',
  }
  // Runners side by side on one machine: each has its own RUNNER_TEMP, and they share the tool cache.
  jobs = await Promise.all(CELLS.map((_, cell) => startGitHubJob(place, { id: `cell-${cell}` })))
  uses = await Promise.all(
    jobs.map((job, cell) =>
      // The cells of a matrix have one GITHUB_JOB.
      job.use({ ...inputs, ...CELLS[cell] }, { GITHUB_JOB: 'e2e', RUNNER_NAME: `runner-${cell}` }),
    ),
  )
  for (const use of uses) expect(use.code, use.log).toBe(0)
})

afterAll(() => place?.remove())

/** What a later step of a job prints; it must succeed. */
async function prints(job: GitHubJob, script: string): Promise<string> {
  const { code, stdout, log } = await job.run(script)
  expect(code, log).toBe(0)
  return stdout.trim()
}

const output = (name: string): string[] => uses.map(use => use.outputs[name] ?? '')
const nodesOf = async (job: GitHubJob, kubeconfig = '$KUBECONFIG'): Promise<string> =>
  prints(job, `kubectl --kubeconfig "${kubeconfig}" get nodes --output name`)

describe('four cells at once', () => {
  it.each(['name', 'kubeconfig', 'kubeconfig-internal', 'server', 'ports'])('have four of %s', name => {
    expect(new Set(output(name)).size, output(name).join('\n')).toBe(CELLS.length)
  })

  it('have a network each, unless they name one: that they share, whoever makes it', async () => {
    const [first, second, ...shared] = output('network')
    expect(new Set([first, second, 'cells']).size).toBe(3)
    expect(shared).toEqual(['cells', 'cells'])
    const made = (await listing(place.docker)).filter(line => line.startsWith('network ') && !before.includes(line))
    expect(made).toEqual(['network cells', `network ${first}`, `network ${second}`].sort())
  })

  it('have IPv6 where the config asks for it', async () => {
    const networks = await place.docker(
      'network',
      'inspect',
      '--format',
      '{{.EnableIPv6}}',
      ...output('network').slice(0, 3),
    )
    expect(networks.trim().split('\n')).toEqual(['true', 'true', 'false'])
    const subnets = async (cell: number): Promise<unknown> =>
      JSON.parse(
        await prints(jobs[cell] as GitHubJob, `kubectl get nodes --output jsonpath='{.items[0].spec.podCIDRs}'`),
      )
    const [v4, v6] = [expect.stringMatching(/^10\.244\./), expect.stringMatching(/^fd00:10:244:/)]
    expect(await subnets(0)).toEqual([v6])
    expect(await subnets(1)).toEqual([v4, v6])
    expect(await subnets(2)).toEqual([v4])
  })

  it('reach their own cluster each, with the kubeconfig of the job and by the one for containers', async () => {
    for (const [cell, job] of jobs.entries()) {
      const name = output('name')[cell]
      expect(await nodesOf(job)).toBe(`node/${name}-control-plane`)
      expect(await prints(job, inContainer)).toBe(`node/${name}-control-plane`)
    }
  })

  it('download kind and kubectl once between them', () => {
    expect(place.page.count(kindPath(names.kindVersion))).toBe(1)
    expect(place.page.count(kubectlPath(names.kubernetesVersion))).toBe(1)
  })
})

/** A container on the cluster's network asks for the nodes; the node image has kubectl. */
const inContainer = `
  docker run --rm --interactive --network "$KIND_IN_DIND_NETWORK" --entrypoint kubectl ${node} \\
    --kubeconfig /dev/stdin get nodes --output name <"$KIND_IN_DIND_KUBECONFIG_INTERNAL"`

describe('a second use in the first job, on a network that was there', () => {
  let second: Use
  let job: GitHubJob
  let first: Use
  beforeAll(async () => {
    ;[job, first] = [jobs[0] as GitHubJob, uses[0] as Use]
    second = await job.use({ ...inputs, network: EXISTING }, { GITHUB_JOB: 'e2e', RUNNER_NAME: 'runner-0' })
    expect(second.code, second.log).toBe(0)
  })

  it('is what later steps have; the first is still there by its outputs', async () => {
    for (const name of ['name', 'kubeconfig', 'kubeconfig-internal', 'server', 'ports', 'network']) {
      expect(second.outputs[name]).not.toBe(first.outputs[name])
    }
    expect(job.env).toMatchObject({
      KUBECONFIG: second.outputs['kubeconfig'],
      KIND_IN_DIND_NAME: second.outputs['name'],
      KIND_IN_DIND_NETWORK: EXISTING,
    })
    expect(await nodesOf(job)).toBe(`node/${second.outputs['name']}-control-plane`)
    expect(await nodesOf(job, first.outputs['kubeconfig'])).toBe(`node/${first.outputs['name']}-control-plane`)
  })

  it('is reached by containers on that network', async () => {
    expect(await prints(job, inContainer)).toBe(`node/${second.outputs['name']}-control-plane`)
  })

  it('stays when the post of the first removes that one alone', async () => {
    const there = await listing(place.docker)
    const post = await job.post(first)
    expect(post.code, post.log).toBe(0)
    const { name } = first.outputs
    const its = [`container ${name}-control-plane`, `network kind-in-dind-${name}`, `volume kind-in-dind-${name}`]
    const left = await listing(place.docker)
    expect(there.filter(line => its.includes(line))).toEqual(its)
    expect(left.filter(line => its.includes(line))).toEqual([])
    // A node has one volume without a name.
    expect(there.length - left.length, post.log).toBe(its.length + 1)
    expect(await nodesOf(job)).toBe(`node/${second.outputs['name']}-control-plane`)
    expect(await prints(job, `ls "${second.outputs['kubeconfig']}"`)).toBe(second.outputs['kubeconfig'])
    expect((await job.run(`ls "${first.outputs['kubeconfig']}"`)).code).not.toBe(0)
  })

  describe('when all jobs end at once', () => {
    let posts: readonly Ended[]
    beforeAll(async () => {
      const others = jobs.slice(1).map((other, index) => other.post(uses[index + 1] as Use))
      posts = await Promise.all([job.post(second), ...others])
    })

    it('goes as all do, with the network that two cells made; the one that was there stays', async () => {
      const logs = posts.map(post => post.log).join('\n')
      for (const post of posts) expect(post.code, post.log).toBe(0)
      expect(logs).not.toMatch(/::(error|warning)/)
      expect(await listing(place.docker), logs).toEqual(before)
      expect(before).toContain(`network ${EXISTING}`)
    })

    it('leaves no file of its own', async () => {
      expect(await prints(job, 'find /__w/_temp -path "*/kind-in-dind*"')).toBe('')
    })
  })
})
