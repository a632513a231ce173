/** The workflows of examples/github as a reader has them, run by act on the lab's engine: real clusters, `uses: ./`. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builderImages } from '../../src/builder/buildx.ts'
import { BUILDX } from '../../src/cluster/versions.ts'
import { REGISTRY_IMAGE } from '../../src/images/registry.ts'
import { buildxPath, kindPath, kubectlPath, type ReleasePage, startReleasePage } from '../release-page.ts'
import { type ActJob, type ActPlace, type ActRun, createActPlace } from './act.ts'
import { docker, listing, names } from './lab.ts'

/** act's own, for all jobs in containers: it makes this volume once and leaves it. */
const TOOL_CACHE = 'act-toolcache'
/** What the examples build on the engine of a plain job. */
const IMAGE = 'web:ci'
const PAGE = 'Served by a pod.'

let page: ReleasePage
let place: ActPlace
let untouched: readonly string[]

beforeAll(async () => {
  untouched = await listing()
  page = await startReleasePage({
    files: {
      [kindPath(names.kindVersion)]: { file: names.tools.kind },
      [kubectlPath(names.kubernetesVersion)]: { file: names.tools.kubectl },
      [buildxPath(BUILDX)]: { file: names.tools.buildx },
    },
    // An address of this machine that containers reach as well.
    address: (await docker('network', 'inspect', 'bridge', '--format', '{{(index .IPAM.Config 0).Gateway}}')).trim(),
  })
  const templates: Readonly<Record<string, string>> = page.templates
  place = await createActPlace({
    act: names.tools.act,
    engine: names.engine,
    programs: { docker: names.tools.docker, node: names.tools.node, bash: 'bash', curl: 'curl' },
    variables: {
      KIND_NODE_IMAGE: names.images.node,
      KIND_DOWNLOAD_URL: ['kind', 'kubectl', 'buildx'].map(name => `${name}=${templates[name]}`).join(),
      KIND_REGISTRY_MIRRORS: names.mirror && `docker.io=${names.mirror}`,
      BASE_IMAGE: names.images.web,
      STEP_IMAGE: names.images.step,
      DIND_IMAGE: names.images.dind,
    },
  })
})

afterAll(async () => {
  place?.remove()
  await page?.close()
  await docker('image', 'rm', '--force', IMAGE)
  if (!untouched.includes(`volume ${TOOL_CACHE}`)) await docker('volume', 'rm', '--force', TOOL_CACHE)
})

/** What is on the engine, but for act's own volume. */
async function onTheEngine(): Promise<readonly string[]> {
  return (await listing()).filter(line => line !== `volume ${TOOL_CACHE}`)
}

/** The job of a run that has no other. */
function only({ jobs, log }: ActRun): ActJob {
  expect(jobs, log).toHaveLength(1)
  return jobs[0] as ActJob
}

function failed(job: ActJob): string[] {
  return job.steps.filter(({ result }) => result !== 'success').map(({ stage, step }) => `${stage} ${step}`)
}

/** Where in the log a line begins that way. */
function at({ lines, log }: ActRun, start: string): number {
  const index = lines.findIndex(line => line.startsWith(start))
  expect(index, `${start}, in:\n${log}`).toBeGreaterThanOrEqual(0)
  return index
}

describe('a plain job (first.yml)', () => {
  let before: readonly string[]
  let after: readonly string[]
  let passing: ActRun
  let failing: ActRun

  beforeAll(async () => {
    before = await onTheEngine()
    const text = readFileSync(join(place.tree, 'examples/github/first.yml'), 'utf8')
    writeFileSync(
      join(place.tree, 'failing.yml'),
      `${text.replace('name: First', 'name: Failing')}      - run: exit 7\n`,
    )
    const runs = await Promise.all([place.run('examples/github/first.yml'), place.run('failing.yml')])
    ;[passing, failing] = runs
    after = await onTheEngine()
  })

  it('uses the cluster in its later steps: kubectl, the preloaded image, the NodePort', () => {
    expect(passing.code, passing.log).toBe(0)
    expect(failed(only(passing))).toEqual([])
    expect(only(passing).outputs['ports']).toMatch(/^{"30080":"127\.0\.0\.1:\d+"}$/)
    expect(passing.log).toContain(PAGE)
  })

  it('loses the cluster when a later step fails too, and fails for that step alone', () => {
    expect(failing.code).toBe(1)
    expect(failed(only(failing)), failing.log).toEqual(['Main exit 7'])
    expect(only(failing).result).toBe('failure')
    expect(at(failing, `Removed ${only(failing).outputs['name']}`)).toBeGreaterThan(at(failing, 'exit status 7'))
  })

  it('shares kind and kubectl with a job beside it: each is downloaded once', () => {
    expect(page.count(kindPath(names.kindVersion)), passing.log).toBe(1)
    expect(page.count(kubectlPath(names.kubernetesVersion)), passing.log).toBe(1)
  })

  it('leaves the engine with the containers, networks and volumes that it had', () => {
    expect(after).toEqual(before)
  })
})

describe('a matrix of two cells on one engine (matrix.yml)', () => {
  let before: readonly string[]
  let after: readonly string[]
  let run: ActRun

  beforeAll(async () => {
    before = await onTheEngine()
    run = await place.run('examples/github/matrix.yml')
    after = await onTheEngine()
  })

  it('passes, with both clusters on the engine at the same time', () => {
    expect(run.code, run.log).toBe(0)
    expect(run.jobs.map(({ result }) => result)).toEqual(['success', 'success'])
    const clusters = run.jobs.map(({ outputs }) => outputs['name'])
    const lines = run.log.split('\n')
    const lineOf = (text: string): number => lines.findIndex(line => line.includes(text))
    const began = clusters.map(name => lineOf(`::group::Create the cluster ${name}`))
    const removed = clusters.map(name => lineOf(`Removed ${name}`))
    expect([...began, ...removed], run.log).not.toContain(-1)
    expect(Math.max(...began), run.log).toBeLessThan(Math.min(...removed))
  })

  it.each(['name', 'network', 'server', 'ports', 'kubeconfig', 'kubeconfig-internal'])(
    'gives each cell its own %s',
    output => {
      const [one, other] = run.jobs.map(({ outputs }) => outputs[output])
      expect(one, run.log).toBeTruthy()
      expect(other, run.log).toBeTruthy()
      expect(one).not.toBe(other)
    },
  )

  it('leaves the engine with the containers, networks and volumes that it had', () => {
    expect(after).toEqual(before)
  })
})

describe('a job in a container with the engine as its service (dind-service.yml)', () => {
  let before: readonly string[]
  let after: readonly string[]
  let run: ActRun

  beforeAll(async () => {
    before = await onTheEngine()
    run = await place.run('examples/github/dind-service.yml')
    after = await onTheEngine()
  })

  it('uses the cluster in its later steps, by the name of the service', () => {
    expect(run.code, run.log).toBe(0)
    const { outputs } = only(run)
    expect(failed(only(run))).toEqual([])
    expect(outputs['server']).toMatch(/^https:\/\/docker:\d+$/)
    expect(outputs['ports']).toMatch(/^{"30080":"docker:\d+"}$/)
    expect(run.log).toContain(PAGE)
  })

  it("reaches it from a container on its network, with that container's kubeconfig", () => {
    expect(run.log).toMatch(new RegExp(`${only(run).outputs['name']}-control-plane +Ready`))
  })

  it('loses the cluster before the service ends', () => {
    const removed = at(run, `Removed ${only(run).outputs['name']} (1 node and its network)`)
    expect(removed).toBeLessThan(at(run, '⭐ Run Complete job'))
  })

  it('leaves the engine with the containers, networks and volumes that it had', () => {
    expect(after).toEqual(before)
  })
})

describe('a builder on the cluster, where the docker CLI has no buildx (builder.yml)', () => {
  const images = {
    [REGISTRY_IMAGE]: names.images.registry,
    [builderImages({ driver: {} }).join()]: names.images.buildkit,
  }
  let before: readonly string[]
  let after: readonly string[]
  let run: ActRun

  beforeAll(async () => {
    before = await onTheEngine()
    for (const [name, image] of Object.entries(images)) await docker('tag', image, name)
    run = await place.run('examples/github/builder.yml')
    for (const name of Object.keys(images)) await docker('image', 'rm', name)
    after = await onTheEngine()
  })

  it("builds an image that pods run from the job's registry", () => {
    expect(run.code, run.log).toBe(0)
    expect(failed(only(run))).toEqual([])
    expect(only(run).outputs['builder']).toMatch(/^kind-in-dind-/)
    expect(run.log).toContain('deployment "web" successfully rolled out')
  })

  it('has the buildx that was fetched', () => {
    expect(page.count(buildxPath(BUILDX)), run.log).toBe(1)
  })

  it('leaves the engine with the containers, networks and volumes that it had', () => {
    expect(after).toEqual(before)
  })
})
