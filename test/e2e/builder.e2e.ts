/**
 * A builder on the cluster, from the step's side of a sidecar: where its images get to, which pod builds what, and that buildx' configuration is the user's own again when the job ends.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { REGISTRY_IMAGE } from '../../src/images/registry.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createPlace, type Place } from './place.ts'

const { node, buildkit, buildkitRootless, web, registry } = names.images

/** Prints buildx' configuration, and what is in each file of it. */
const CONFIGURATION = 'cd ~/.docker && find . -type d | sort && find . -type f -exec sha256sum {} + | sort -k2'

let place: Place
let job: GitHubJob
let onEngine: readonly string[]
let configuration: string

beforeAll(async () => {
  place = await createPlace({ tls: true, images: [node, buildkit, buildkitRootless, web, registry] })
  await place.docker('tag', registry, REGISTRY_IMAGE)
  job = await startGitHubJob(place, { id: 'builder', onLine: line => seen?.(line) })
  // As people have it who build on an engine with TLS: a context, and a builder for it that is the current one.
  const files = ['ca', 'cert', 'key'].map(name => `${name}=/certs/client/${name}.pem`)
  await prints(
    `docker context create lab --docker host=$DOCKER_HOST,${files.join(',')} && docker buildx create --name mine --use lab`,
  )
  onEngine = await listing(place.docker)
  configuration = await prints(CONFIGURATION)
})
afterAll(() => place?.remove())

/** Hears each line that the job prints. */
let seen: ((line: string) => void) | undefined

/** What a later step prints; it must succeed. */
async function prints(script: string, input?: string): Promise<string> {
  const { code, stdout, log } = await job.run(script, input === undefined ? {} : { input })
  expect(code, log).toBe(0)
  return stdout.trim()
}

/** A context in a folder of its own. */
async function context(name: string, dockerfile: string): Promise<string> {
  await prints(`mkdir -p ~/${name} && date +%N >~/${name}/content && cat >~/${name}/Dockerfile`, dockerfile)
  return `~/${name}`
}

const SCRATCH = 'FROM scratch\nCOPY content /\n'

const inputs = (builder: string) => ({
  'node-image': node,
  'download-url': `kind=${place.page.templates.kind}\nkubectl=${place.page.templates.kubectl}`,
  builder: `image=${buildkit}\n${builder}`,
})

/** The pod that built each of these contexts, in their order; each is built anew. */
async function podsOf(contexts: readonly string[], namespace: string): Promise<string[]> {
  const script = `for context; do
      date +%N >"$HOME/$context/content"
      docker buildx build --quiet --metadata-file /tmp/built "$HOME/$context" >&2
      sed -n 's|.*"buildx.build.ref": ".*/\\(.*\\)".*|ref \\1|p' /tmp/built
    done
    for pod in $(kubectl get pods --namespace ${namespace} --output name); do
      echo "$pod"; kubectl exec --namespace ${namespace} "$pod" -- buildctl debug histories
    done`
  const lines = (await prints(`set -- ${contexts.join(' ')}; ${script}`)).split('\n')
  const refs = lines.filter(line => line.startsWith('ref ')).map(line => line.slice(4))
  return refs.map(ref => {
    const at = lines.findIndex(line => !line.startsWith('ref ') && line.includes(ref))
    return lines.slice(0, at).findLast(line => line.startsWith('pod/')) ?? 'none'
  })
}

async function expectRemoved(use: Use): Promise<void> {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(annotations(post, 'warning')).toEqual([])
  expect(await prints(CONFIGURATION)).toBe(configuration)
  expect(await listing(place.docker)).toEqual(onEngine)
}

describe('three replicas on two workers', () => {
  let use: Use

  beforeAll(async () => {
    use = await job.use({ ...inputs('replicas=3\nnamespace=building'), workers: '2', registry: 'true' })
    expect(use.code, use.log).toBe(0)
    await prints(`docker tag ${web} $KIND_IN_DIND_REGISTRY/web:ci && docker push --quiet $KIND_IN_DIND_REGISTRY/web:ci`)
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
    const folder = await context('loaded', SCRATCH)
    await prints(`docker buildx build -t loaded:ci --load ${folder}`)
    expect(await prints('docker image inspect --format "{{.RepoTags}}" loaded:ci')).toBe('[loaded:ci]')
    const again = await job.run(`docker buildx build --progress plain -t loaded:ci --load ${folder}`)
    expect(again.log).toMatch(/^#\d+ CACHED$/m)
  })

  it('build images that pods run: pushed to the registry of the job, or loaded with kind-in-dind load', async () => {
    // The base image comes from that registry too, by the name that docker push has for it.
    const folder = await context('app', `FROM ${use.outputs['registry']}/web:ci\nCOPY content /content\n`)
    await prints(
      `docker buildx build -t $KIND_IN_DIND_REGISTRY_INTERNAL/app:ci --push ${folder}
      docker buildx build -t app:loaded --load ${folder} && kind-in-dind load app:loaded
      kubectl run pushed --image $KIND_IN_DIND_REGISTRY_INTERNAL/app:ci
      kubectl run loaded --image app:loaded --image-pull-policy Never
      kubectl wait pod/pushed pod/loaded --for condition=Ready --timeout 1m`,
    )
    expect(await prints('kubectl exec pushed -- cat /content')).toBe(await prints('cat ~/app/content'))
    expect(await prints('kubectl exec loaded -- cat /content')).toBe(await prints('cat ~/app/content'))
  })

  it('are chosen by the path of the context: one path always gets the same pod', async () => {
    const paths = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    for (const path of paths) await context(path, SCRATCH)
    const pods = await podsOf([...paths, ...paths], 'building')
    expect(pods.slice(paths.length)).toEqual(pods.slice(0, paths.length))
    expect(new Set(pods).size).toBeGreaterThan(1)
  })

  it('come back when one is deleted, and build on', async () => {
    await prints(
      `kubectl delete --namespace building --wait $(kubectl get pods --namespace building --output name | head -1)
      kubectl rollout status deployment/buildkit --namespace building --timeout 1m`,
    )
    expect((await prints('docker buildx inspect')).match(/^Status: +running$/gm)).toHaveLength(3)
    await prints(`docker buildx build ${await context('again', SCRATCH)}`)
  })

  it("are gone after post, and buildx' configuration is as it was", async () => {
    await expectRemoved(use)
    expect(await prints('unset BUILDX_BUILDER; docker buildx inspect')).toMatch(/^Name: +mine$/m)
  })
})

it('what buildx refuses is refused before anything is made', async () => {
  const use = await job.use(inputs('replicaz=3'))
  expect(use.code).toBe(1)
  expect(use.log).toContain('builder: docker buildx refuses it: invalid driver option replicaz for driver kubernetes')
  await expectRemoved(use)
})

it('a pod that cannot start is shown with its events, long before the time-out', async () => {
  const use = await job.use(inputs('requests.cpu=64'))
  expect(use.code).toBe(1)
  expect(use.log).toMatch(
    /builder: a pod of it does not start:(%0A|\n) +pod buildkit-\S+: Pending; FailedScheduling: .*Insufficient cpu/,
  )
  await expectRemoved(use)
})

it('a cancel while it starts leaves nothing either', async () => {
  const running = job.start(inputs('replicas=1'))
  await new Promise<void>((resolve, reject) => {
    seen = line => {
      if (/: loaded into \d+ nodes?,/.test(line)) resolve()
    }
    running.ended.then(({ log }) => reject(new Error(log)))
  })
  await running.signal('SIGTERM')
  seen = undefined
  await expectRemoved(await running.ended)
})

describe('two replicas at random, without rights', () => {
  let use: Use

  beforeAll(async () => {
    await prints('cat >/tmp/buildkitd.toml', '[registry."nobody.example"]\n  mirrors = ["nowhere.example"]\n')
    const own = inputs('replicas=2\nloadbalance=random\nrootless=true\nbuildkitd-config=/tmp/buildkitd.toml')
    use = await job.use({ ...own, registry: 'true', builder: own.builder.replace(buildkit, buildkitRootless) })
    expect(use.code, use.log).toBe(0)
  })

  it('build without a privileged pod, with what their buildkitd.toml says of registries', async () => {
    expect(
      await prints("kubectl get pods --output jsonpath='{.items[*].spec.containers[*].securityContext}'"),
    ).not.toContain('privileged')
    await prints(`docker tag ${web} $KIND_IN_DIND_REGISTRY/web:ci && docker push --quiet $KIND_IN_DIND_REGISTRY/web:ci`)
    const folder = await context('rootless', `FROM ${use.outputs['registry']}/web:ci\nRUN cat /proc/self/uid_map\n`)
    const { code, log } = await job.run(
      `docker buildx build --progress plain -t $KIND_IN_DIND_REGISTRY_INTERNAL/app:ci --push ${folder}`,
    )
    expect(code, log).toBe(0)
    // Root in there is somebody without rights outside.
    expect(log).toMatch(/^#\d+ [\d.]+ +0 +[1-9]/m)
    const unknown = await job.run(`docker buildx build - 2>&1`, { input: 'FROM nobody.example/app\n' })
    expect(unknown.log).toContain('nowhere.example')
  })

  it('are chosen anew for each build', async () => {
    await context('random', SCRATCH)
    // The driver draws by the clock's second.
    const pods = new Set<string>()
    for (let left = 20; left > 0 && pods.size < 2; left--) {
      for (const pod of await podsOf(['random', 'random'], 'default')) pods.add(pod)
    }
    expect(pods.size).toBe(2)
  })

  it('go like all others', async () => {
    await expectRemoved(use)
  })
})
