/**
 * Images that come by a registry: the job's own, which the engine, the step's tools and pods each reach by a name, and mirrors
 * of registries that are not there.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REGISTRY_IMAGE } from '../../src/images/registry.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { labInputs } from './life.ts'
import { MIRRORED, type Mirrors, startMirrors } from './mirror.ts'
import { createGround, engineVariables, type Ground, type Sidecar } from './place.ts'

const { node, nodeContainerd2, web, registry } = names.images

let ground: Ground
let sidecar: Sidecar
let mirrors: Mirrors
let before: readonly string[]
let job: GitHubJob
let use: Use

beforeAll(async () => {
  ground = await createGround()
  sidecar = await ground.startSidecar('docker', { tls: false, images: [node, nodeContainerd2, web, registry] })
  await sidecar.docker('tag', registry, REGISTRY_IMAGE)
  mirrors = await startMirrors(sidecar, registry, web)
  const step = await ground.startStep('step', { variables: engineVariables('docker', false) })
  await step.run(['sh', '-c', 'cat >/ca.pem'], { input: mirrors.ca })
  before = await listing(sidecar.docker)
  job = await startGitHubJob(step, { id: 'e2e' })
  use = await job.use({
    ...labInputs(ground),
    registry: 'true',
    images: `engine.example.test/${MIRRORED}\n${byDigest()}`,
    'registry-mirrors': `
      engine.example.test=${mirrors.loopback}
      digest.example.test=${mirrors.loopback}
      plain.example.test=${mirrors.plain}
      tls.example.test=${mirrors.tls}/team ca=/ca.pem`,
    config: `{kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4, nodes: [{role: control-plane}, {role: worker, image: ${nodeContainerd2}}]}`,
  })
  expect(use.code, use.log).toBe(0)
})

afterAll(async () => {
  await mirrors?.remove()
  await ground?.remove()
})

/** The image of the mirrors by its digest. */
const byDigest = (): string => `digest.example.test/team/app@${mirrors.digest}`

/** What a later step prints; it must succeed. */
async function prints(script: string, input?: string): Promise<string> {
  const { code, stdout, log } = await job.run(script, input === undefined ? {} : { input })
  expect(code, log).toBe(0)
  return stdout.trim()
}

/** Copies an image within a registry as its clients do: every blob and the manifest over HTTP, with nothing but Node. */
const COPY = `
  const [registry, from, to] = process.argv.slice(1)
  const at = (repository, rest) => 'http://' + registry + '/v2/' + repository + '/' + rest
  const call = async (url, options) => {
    const response = await fetch(url, options)
    if (!response.ok) throw new Error(options?.method + ' ' + url + ': ' + response.status + ' ' + (await response.text()))
    return response
  }
  const type = 'application/vnd.docker.distribution.manifest.v2+json'
  const manifest = await (await call(at(from, 'manifests/ci'), { headers: { accept: type } })).text()
  const { config, layers } = JSON.parse(manifest)
  for (const { digest } of [config, ...layers]) {
    const body = await (await call(at(from, 'blobs/' + digest))).arrayBuffer()
    const upload = (await call(at(to, 'blobs/uploads/'), { method: 'POST' })).headers.get('location')
    const url = new URL(upload, at(to, ''))
    url.searchParams.set('digest', digest)
    await call(url, { method: 'PUT', body, headers: { 'content-type': 'application/octet-stream' } })
  }
  await call(at(to, 'manifests/ci'), { method: 'PUT', body: manifest, headers: { 'content-type': type } })`

/** Lets nodes pull images: each by a pod that runs a web server of it. */
async function pull(test: string, wanted: readonly (readonly [node: string, image: string])[]): Promise<void> {
  const items = wanted.map(([nodeName, image], index) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `${test}-${index}`, labels: { test } },
    spec: {
      nodeName,
      containers: [{ name: 'web', image, imagePullPolicy: 'Always' }],
      terminationGracePeriodSeconds: 0,
    },
  }))
  await prints('kubectl create --filename -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }))
  const waited = await job.run(`kubectl wait pod --selector test=${test} --for condition=Ready --timeout 1m`)
  expect(waited.code, `${waited.log}\n${await prints('kubectl get events')}`).toBe(0)
}

describe('a registry of the job', () => {
  it('is named in the outputs, in the variables and in the log', () => {
    const { outputs } = use
    expect(outputs).toMatchObject({
      registry: expect.stringMatching(/^localhost:2\d{4}$/),
      'registry-host': outputs['registry']?.replace('localhost', 'docker'),
      'registry-internal': `${outputs['name']}-registry:5000`,
    })
    expect(job.env['KIND_IN_DIND_REGISTRY']).toBe(outputs['registry'])
    expect(use.log).toMatch(new RegExp(`registry, for docker push +${outputs['registry']}\n`))
    expect(use.log).toMatch(new RegExp(`registry, for other tools +${outputs['registry-host']}\n`))
    expect(annotations(use, 'warning'), use.log).toEqual([])
  })

  it('gets what the engine pushes, and what a tool of the step pushes by itself', async () => {
    await prints(
      `docker tag ${web} "$KIND_IN_DIND_REGISTRY/engine:ci" && docker push "$KIND_IN_DIND_REGISTRY/engine:ci"`,
    )
    await prints('node --input-type module --eval "$(cat)" "$KIND_IN_DIND_REGISTRY_HOST" engine team/step', COPY)
    expect(JSON.parse(await prints('curl --silent --fail "http://$KIND_IN_DIND_REGISTRY_HOST/v2/_catalog"'))).toEqual({
      repositories: ['engine', 'team/step'],
    })
  })

  it('gives it to pods by each of its names, on every node', async () => {
    const { outputs } = use
    const images = [outputs['registry'], outputs['registry-host'], outputs['registry-internal']].flatMap(registry => [
      `${registry}/engine:ci`,
      `${registry}/team/step:ci`,
    ])
    const nodes = [`${outputs['name']}-control-plane`, `${outputs['name']}-worker`]
    await pull(
      'names',
      nodes.flatMap(name => images.map(image => [name, image] as const)),
    )
    // The nodes differ in the major of their containerd.
    const versions = await prints("kubectl get nodes --output jsonpath='{..containerRuntimeVersion}'")
    expect(versions.split(' ').sort()).toEqual([
      expect.stringMatching(/^containerd:\/\/1\./),
      expect.stringMatching(/^containerd:\/\/2\./),
    ])
  })

  it('is where tools look for it', async () => {
    const data = '{.data.localRegistryHosting\\.v1}'
    const hosting = await prints(
      `kubectl get configmap local-registry-hosting --namespace kube-public --output jsonpath='${data}'`,
    )
    expect(JSON.parse(hosting)).toMatchObject({
      host: use.outputs['registry'],
      hostFromContainerRuntime: use.outputs['registry-internal'],
      hostFromClusterNetwork: use.outputs['registry-internal'],
    })
  })

  it('is published for the engine and the step alone', async () => {
    const published = await sidecar.docker('port', `${use.outputs['name']}-registry`)
    expect(
      published
        .trim()
        .split('\n')
        .map(line => line.replace(/:\d+$/, ''))
        .sort(),
    ).toEqual(['5000/tcp -> 127.0.0.1', expect.stringMatching(/^5000\/tcp -> (?!0\.0\.0\.0)[\d.]+$/)])
  })
})

describe('mirrors', () => {
  it('give pods the images of registries that are not there, with credentials, and over TLS with a CA of their own', async () => {
    const nodes = [`${use.outputs['name']}-control-plane`, `${use.outputs['name']}-worker`]
    const images = [`plain.example.test/${MIRRORED}`, `tls.example.test/${MIRRORED.replace('team/', '')}`]
    await pull(
      'mirrors',
      nodes.flatMap(name => images.map(image => [name, image] as const)),
    )
  })

  it('give the engine what is to be loaded, which it then has by no other name, but for a digest', async () => {
    const tags = await sidecar.docker('image', 'ls', '--format', '{{.Repository}}:{{.Tag}}')
    expect(tags.split('\n').filter(tag => /team\/app:(?!<none>)/.test(tag))).toEqual([
      `engine.example.test/${MIRRORED}`,
    ])
    for (const name of ['control-plane', 'worker']) {
      for (const image of [`engine.example.test/${MIRRORED}`, byDigest()])
        await sidecar.docker('exec', `${use.outputs['name']}-${name}`, 'crictl', 'inspecti', image)
    }
  })

  it('keep their password to themselves', async () => {
    // GitHub hides what it is told so.
    expect(use.log).toContain(`::add-mask::${mirrors.password}`)
    const shown = use.log.split('\n').filter(line => !line.startsWith('::add-mask::'))
    for (const secret of [mirrors.password, mirrors.basic]) expect(shown.join('\n')).not.toContain(secret)
    const folder = '/etc/containerd/certs.d/plain.example.test'
    const { outputs } = use
    const modes = await sidecar.docker(
      'exec',
      `${outputs['name']}-worker`,
      'stat',
      '--format=%a',
      folder,
      `${folder}/hosts.toml`,
    )
    expect(modes).toBe('700\n600\n')
    // A pattern on stdin, so that grep itself does not have it among its arguments.
    const found = await job.run(
      'stat --format="%a %n" $(grep --recursive --files-with-matches --file - "$RUNNER_TEMP")',
      { input: `${mirrors.password}\n${mirrors.basic}\n` },
    )
    expect(found.stdout).toMatch(/^600 \S+\/state\.json\n$/)
  })
})

it('goes with its volume after the job', async () => {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(post.log).toMatch(/Removed .* \(2 nodes, its registry and its network\)/)
  expect(await listing(sidecar.docker), post.log).toEqual(before)
})
