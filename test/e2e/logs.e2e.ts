/** What there is to look at when something failed: the error, the logs, and none of the secrets. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createPlace, type Ended, type Place, prepare } from './place.ts'

const { node, web } = names.images
const SECRET = 'correct-horse-battery-staple'

let place: Place
let inputs: Readonly<Record<string, string>>
let before: readonly string[]

beforeAll(async () => {
  place = await createPlace({ tls: false, images: [node, web] })
  before = await listing(place.docker)
  const { kind, kubectl } = place.page.templates
  inputs = { 'node-image': node, 'download-url': `kind=${kind},kubectl=${kubectl}` }
})

afterAll(() => place?.remove())

/** The files below a folder of the step, by path. */
async function filesIn(folder: string): Promise<Readonly<Record<string, string>>> {
  const printed = await prepare(
    place,
    `cd '${folder}' && find . -type f -printf '%P\\n' | while IFS= read -r file; do printf '%s\\n' "$file"; base64 --wrap=0 <"$file"; echo; done`,
  )
  const lines = printed.split('\n')
  const files = lines.flatMap((line, index) =>
    index % 2 === 0 ? [[line, Buffer.from(lines[index + 1] ?? '', 'base64').toString('utf8')] as const] : [],
  )
  return Object.fromEntries(files)
}

describe('a job that fails', () => {
  let job: GitHubJob
  let use: Use
  let exported: Use
  let files: Readonly<Record<string, string>>
  let post: Ended

  beforeAll(async () => {
    job = await startGitHubJob(place, { id: 'fails' })
    use = await job.use({ ...inputs, images: web })
    expect(use.code, use.log).toBe(0)
    const failed = await job.run(`
      kubectl create secret generic app --from-literal=password=${SECRET}
      kubectl run talks --image=${web} --image-pull-policy=Never --restart=Never --command -- echo "it is ${SECRET}"
      kubectl run stuck --image=127.0.0.1:1/nobody/none:1
      kubectl wait pod/talks --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s
      for try in $(seq 60); do kubectl get events | grep 'Failed.*pod/stuck' && exit 42; sleep 1; done`)
    expect(failed.code, failed.log).toBe(42)
    exported = await job.useSub('logs', {})
    expect(exported.code, exported.log).toBe(0)
    files = await filesIn(exported.outputs['logs-dir'] ?? '')
    post = await job.post(use)
  })

  it('has what every node, pod and event says in files that a later step can upload', () => {
    const { name } = use.outputs
    expect(exported.outputs['logs-dir']).toBe(use.outputs['logs-dir'])
    expect(exported.outputs['artifact-name']).toMatch(new RegExp(`^kind-in-dind-${name}-[0-9a-f]{8}$`))
    const inNode = ['kubelet.log', 'containerd.log', 'container.json', 'container.log', 'images.txt', 'journal.log']
    const expected = ['events.txt', 'nodes.txt', 'not-ready.txt', 'resources.txt']
    expect(Object.keys(files)).toEqual(
      expect.arrayContaining([...expected, ...inNode.map(file => `${name}-control-plane/${file}`)]),
    )
    expect(files['not-ready.txt']).toMatch(/^pod default\/stuck: Pending; .*(ErrImagePull|ImagePullBackOff)/m)
    expect(files['not-ready.txt']).not.toContain('talks')
    expect(files['events.txt']).toMatch(/Warning\s+Failed\s+pod\/stuck/)
  })

  it('has no Secret, key or token in them', () => {
    const talk = Object.keys(files).find(file => /\/pods\/default_talks_.*\/0\.log$/.test(file)) ?? ''
    expect(files[talk]).toContain('it is ***')
    for (const [file, content] of Object.entries(files)) {
      expect(content, file).not.toContain(SECRET)
      expect(content, file).not.toContain(Buffer.from(SECRET).toString('base64'))
      expect(content, file).not.toMatch(/PRIVATE KEY|LS0tLS1CRUdJTi|\b[a-z0-9]{6}\.[a-z0-9]{16}\b/)
    }
  })

  it('is told by post what was wrong, and leaves nothing', async () => {
    expect(post.code, post.log).toBe(0)
    expect(post.log).toMatch(/pod default\/stuck: Pending/)
    expect(post.log).toMatch(/Warning {2}Failed {2}pod\/stuck/)
    expect(post.log).not.toContain(SECRET)
    expect(await listing(place.docker), post.log).toEqual(before)
  })
})

describe('a start whose kubelet cannot run', () => {
  const config = `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes:
- role: control-plane
  kubeadmConfigPatches:
  - |
    kind: InitConfiguration
    nodeRegistration:
      kubeletExtraArgs:
        no-such-flag: "1"
`

  it('fails long before kubeadm gives up, with the reason; its logs are there, and its nodes go', async () => {
    const job = await startGitHubJob(place, { id: 'kubelet' })
    const use = await job.use({ ...inputs, config, name: 'broken', 'logs-dir': '/tmp/kept-logs' })
    expect(use.code, use.log).toBe(1)
    const [error = ''] = annotations(use, 'error')
    expect(error, use.log).toMatch(
      /^kind could not create the cluster: the kubelet on broken-control-plane does not start$/m,
    )
    expect(error).toMatch(/^the kubelet on broken-control-plane ends again and again: .*unknown flag: --no-such-flag/m)
    expect(error.split('\n').length).toBeLessThan(6)
    expect(use.took).toBeLessThan(200_000)
    expect(use.outputs).toEqual({ 'logs-dir': '/tmp/kept-logs/broken' })
    const files = await filesIn('/tmp/kept-logs/broken')
    expect(files['broken-control-plane/kubelet.log']).toContain('unknown flag: --no-such-flag')

    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(await listing(place.docker), post.log).toEqual(before)
  })
})
