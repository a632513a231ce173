/**
 * A builder on the cluster, from the step's side of a sidecar: what it builds is in the engine, and buildx' configuration is the
 * user's own again when the job ends.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { names } from './lab.ts'
import { createPlace, type Place } from './place.ts'

const { node, buildkit, web } = names.images

/** Prints buildx' configuration: each path, and what is in each file. */
const CONFIGURATION = 'cd ~/.docker && find . -type d && find . -type f -exec sha256sum {} + | sort -k2'

/** A context in its own folder, whose image differs from every other. */
const context = (name: string): string =>
  `mkdir -p ~/${name} && echo ${name} >~/${name}/content && printf 'FROM scratch\\nCOPY content /\\n' >~/${name}/Dockerfile`

let place: Place
let job: GitHubJob

beforeAll(async () => {
  place = await createPlace({ tls: true, images: [node, buildkit, web] })
  // As people have it who build on an engine with TLS: a context, and a builder for it that is the current one.
  job = await startGitHubJob(place, { id: 'builder' })
  const key = ['ca', 'cert', 'key'].map(name => `${name}=/certs/client/${name}.pem`)
  await prints(
    `docker context create lab --docker host=$DOCKER_HOST,${key.join(',')} && docker buildx create --name mine --use lab`,
  )
})
afterAll(() => place?.remove())

/** What a later step prints; it must succeed. */
async function prints(script: string): Promise<string> {
  const { code, stdout, log } = await job.run(script)
  expect(code, log).toBe(0)
  return stdout.trim()
}

const inputs = () => ({
  'node-image': node,
  'download-url': `kind=${place.page.templates.kind}\nkubectl=${place.page.templates.kubectl}`,
})

describe('three replicas on two workers', () => {
  let before: string
  let use: Use

  beforeAll(async () => {
    before = await prints(CONFIGURATION)
    const builder = `image=${buildkit}\nreplicas=3\nnamespace=building`
    use = await job.use({ ...inputs(), workers: '2', builder })
    expect(use.code, use.log).toBe(0)
  })

  it('are the nodes of the current builder when the step begins', async () => {
    const inspected = await prints('docker buildx inspect')
    expect(inspected).toMatch(new RegExp(`^Name: +${use.outputs['builder']}$`, 'm'))
    expect(inspected.match(/^Status: +running$/gm)).toHaveLength(3)
    expect(await prints('kubectl get pods --namespace building --output name')).toMatch(/^(pod\/buildkit-\S+\s*){3}$/)
  })

  it("are not in the way of the user's own builder and engine", async () => {
    expect(await prints('docker buildx ls')).toMatch(/^mine\* +docker-container/m)
    expect(await prints('echo "$DOCKER_HOST"')).toBe('tcp://docker:2376')
  })

  it('build an image into the engine, the second time from their cache', async () => {
    await prints(`${context('loaded')}; cd ~/loaded; docker buildx build -t loaded:ci --load .`)
    expect(await prints('docker image inspect --format "{{.RepoTags}}" loaded:ci')).toBe('[loaded:ci]')
    const again = await job.run('cd ~/loaded; docker buildx build --progress plain -t loaded:ci --load .')
    expect(again.log).toMatch(/^#\d+ CACHED$/m)
  })

  it("are gone after post, and buildx' configuration is as it was", async () => {
    const { code, log } = await job.post(use)
    expect(code, log).toBe(0)
    expect(log).not.toMatch(/warning/i)
    expect(await prints('unset BUILDX_BUILDER; docker buildx inspect')).toMatch(/^Name: +mine$/m)
    expect(await prints(CONFIGURATION)).toBe(before)
  })
})

it('what buildx refuses is refused before anything is made', async () => {
  const use = await job.use({ ...inputs(), builder: 'replicaz=3' })
  expect(use.code).toBe(1)
  expect(use.log).toContain('builder: docker buildx refuses it: invalid driver option replicaz for driver kubernetes')
  expect(await place.docker('ps', '--all', '--quiet')).toBe('')
})
