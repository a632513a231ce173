/**
 * A builder on the cluster, from the step's side of a sidecar: where its images get to, which pod builds what, what becomes of a build
 * whose pod is lost, and that buildx' configuration is the user's own again when the job ends.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BUILDX } from '../../src/cluster/versions.ts'
import { REGISTRY_IMAGE } from '../../src/images/registry.ts'
import { buildxPath } from '../release-page.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createPlace, type Ended, type Place } from './place.ts'

const { node, buildkit, buildkitRootless, web, registry } = names.images

/** Prints buildx' configuration, and what is in each file of it. */
const CONFIGURATION = 'cd ~/.docker && find . ! -type f | sort && find . -type f -exec sha256sum {} + | sort -k2'

/** Where emulators would come from: an image that does nothing, whatever it is told. */
const EMULATORS = 'emulators:ci'

let place: Place
let job: GitHubJob
let onEngine: readonly string[]
let configuration: string

beforeAll(async () => {
  place = await createPlace({
    tls: true,
    images: [node, buildkit, buildkitRootless, web, registry],
    files: { [buildxPath(BUILDX)]: { file: names.tools.buildx } },
  })
  await place.docker('tag', registry, REGISTRY_IMAGE)
  await place.docker('create', '--name', 'emulators', web)
  await place.docker('commit', '--change', 'ENTRYPOINT ["sh", "-c", "true"]', 'emulators', EMULATORS)
  await place.docker('rm', 'emulators')
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
  'download-url': ['kind', 'kubectl', 'buildx']
    .map(name => `${name}=${place.page.templates[name as keyof Place['page']['templates']]}`)
    .join('\n'),
  builder: `image=${buildkit}\n${builder}`,
})

/** The pod that built each of these contexts, in their order; each is built anew. */
async function podsOf(contexts: readonly string[], namespace: string): Promise<string[]> {
  const script = `for context; do
      date +%N >"$HOME/$context/content"
      docker buildx build --quiet --output type=cacheonly --metadata-file /tmp/built "$HOME/$context" >&2
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

/** Builds a context, which goes on until its pod is lost. @returns once it does; `ended` when it has */
async function startBuild(name: string): Promise<{ readonly ended: Promise<Ended> }> {
  const folder = await context(name, `FROM ${web}\nRUN echo "has begun: $((40 + 2))" && sleep 300\n`)
  let begun = (): void => {}
  const running = new Promise<void>(resolve => {
    begun = resolve
  })
  seen = line => {
    if (line.includes('has begun: 42')) begun()
  }
  const ended = job.run(`timeout 60 docker buildx build --progress plain ${folder}`)
  const failed = ended.then(({ log }) => Promise.reject(new Error(log)))
  await Promise.race([running, failed])
  seen = undefined
  return { ended }
}

/** Its own error, and neither a hang nor success. */
function expectLost({ code, log }: Ended): void {
  expect(code, log).toBe(1)
  expect(log).toMatch(/^ERROR: failed to build: /m)
}

async function expectRemoved(use: Use): Promise<void> {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(annotations(post, 'warning')).toEqual([])
  expect(await prints(CONFIGURATION)).toBe(configuration)
  expect(await listing(place.docker)).toEqual(onEngine)
}

/** Of the driver's options each that is seen on what it makes. */
const DRIVER = `replicas=3
namespace=building
requests.cpu=50m
requests.memory=64Mi
limits.cpu=2
limits.memory=1Gi
limits.ephemeral-storage=20Gi
nodeselector=kubernetes.io/os=linux,kubernetes.io/arch=${process.arch === 'x64' ? 'amd64' : process.arch}
tolerations=key=disk,operator=Exists,effect=NoSchedule;key=size,value=small
labels=team=ci,tier=build
annotations=example.org/who=me,example.org/why=speed
serviceaccount=default
qemu.install=true
qemu.image=${EMULATORS}
timeout=90s
loadbalance=sticky`

/** Nodes that are silent count as lost after seconds; by default it is most of a minute. */
const HASTY = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    controllerManager:
      extraArgs:
        node-monitor-grace-period: 16s
`

describe('three replicas on two workers', () => {
  let use: Use

  beforeAll(async () => {
    use = await job.use({ ...inputs(DRIVER), workers: '2', registry: 'true', config: HASTY })
    expect(use.code, use.log).toBe(0)
    await prints(`docker tag ${web} $KIND_IN_DIND_REGISTRY/web:ci && docker push --quiet $KIND_IN_DIND_REGISTRY/web:ci`)
  })

  it('are the nodes of the current builder when the step begins', async () => {
    const inspected = await prints('docker buildx inspect')
    expect(inspected).toMatch(new RegExp(`^Name: +${use.outputs['builder']}$`, 'm'))
    expect(inspected.match(/^Status: +running$/gm)).toHaveLength(3)
    expect(await prints('kubectl get pods --namespace building --output name')).toMatch(/^(pod\/buildkit-\S+\s*){3}$/)
  })

  it('are what the driver was told, with a probe and tolerations of ours', async () => {
    const lost = { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 10 }
    const labels = { app: 'buildkit', team: 'ci', tier: 'build' }
    const annotations = { 'example.org/who': 'me', 'example.org/why': 'speed' }
    expect(
      JSON.parse(await prints('kubectl get deployment buildkit --namespace building --output json')),
    ).toMatchObject({
      metadata: { labels, annotations },
      spec: {
        replicas: 3,
        template: {
          metadata: { labels, annotations },
          spec: {
            serviceAccountName: 'default',
            nodeSelector: { 'kubernetes.io/os': 'linux' },
            tolerations: [
              { key: 'disk', operator: 'Exists', effect: 'NoSchedule' },
              { key: 'size', value: 'small' },
              { ...lost, key: 'node.kubernetes.io/not-ready' },
              { ...lost, key: 'node.kubernetes.io/unreachable' },
            ],
            initContainers: [{ name: 'qemu', image: EMULATORS, args: ['--install', 'all'] }],
            containers: [
              {
                image: buildkit,
                resources: {
                  requests: { cpu: '50m', memory: '64Mi' },
                  limits: { cpu: '2', memory: '1Gi', 'ephemeral-storage': '20Gi' },
                },
                startupProbe: { periodSeconds: 1 },
              },
            ],
          },
        },
      },
    })
    expect(await prints('docker buildx inspect')).toMatch(/^Driver Options:.*timeout="90s"/m)
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
    // On buildx' ring (serialx/hashring, a point for each pod) one pod's part may be nearly all: with three pods eight paths all fall to
    // one of them in 4 of 100 rings, 200 in one of ten thousand.
    const paths: string[] = []
    const pods: string[] = []
    while (new Set(pods).size < 2 && paths.length < 200) {
      const more = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'].map(letter => `${letter}${paths.length}`)
      for (const path of more) await context(path, SCRATCH)
      pods.push(...(await podsOf(more, 'building')))
      paths.push(...more)
    }
    expect(pods).not.toContain('none')
    expect(new Set(pods).size, `${paths.length} paths`).toBeGreaterThan(1)
    expect(await podsOf(paths, 'building')).toEqual(pods)
  })

  it('come back when one is deleted, and build on', async () => {
    await prints(
      `kubectl delete --namespace building --wait $(kubectl get pods --namespace building --output name | head -1)
      kubectl rollout status deployment/buildkit --namespace building --timeout 1m`,
    )
    expect((await prints('docker buildx inspect')).match(/^Status: +running$/gm)).toHaveLength(3)
    await prints(`docker buildx build ${await context('again', SCRATCH)}`)
  })

  it("lose one that is restarted during a build: it gives the build's own error, and the next build works", async () => {
    const folder = await context('restarted', SCRATCH)
    const [pod] = await podsOf(['restarted'], 'building')
    const building = await startBuild('restarted')
    const [on = '', container = ''] = (
      await prints(
        `kubectl get --namespace building ${pod} --output jsonpath='{.spec.nodeName} {.status.containerStatuses[0].containerID}'`,
      )
    ).split(' ')
    await place.docker('exec', on, 'crictl', 'stop', '--timeout', '0', container.replace('containerd://', ''))
    expectLost(await building.ended)
    await prints(
      `kubectl wait --namespace building ${pod} --for jsonpath='{.status.containerStatuses[0].restartCount}'=1 --timeout 1m
      kubectl wait --namespace building ${pod} --for condition=Ready --timeout 1m`,
    )
    await context('restarted', SCRATCH)
    await prints(`docker buildx build ${folder}`)
  })

  it("lose those of a node during a build: it gives the build's own error, and the next build works", async () => {
    const folder = await context('lost', SCRATCH)
    const [pod] = await podsOf(['lost'], 'building')
    const building = await startBuild('lost')
    await place.docker(
      'kill',
      await prints(`kubectl get --namespace building ${pod} --output jsonpath={.spec.nodeName}`),
    )
    expectLost(await building.ended)
    await prints(
      `kubectl wait --namespace building ${pod} --for jsonpath={.metadata.deletionTimestamp} --timeout 1m
      kubectl rollout status deployment/buildkit --namespace building --timeout 1m`,
    )
    await context('lost', SCRATCH)
    await prints(`docker buildx build ${folder}`)
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

describe('two replicas at random, without rights, where the docker CLI has no buildx', () => {
  let use: Use

  beforeAll(async () => {
    await prints(
      `rm "$(docker info --format '{{range .ClientInfo.Plugins}}{{if eq .Name "buildx"}}{{.Path}}{{end}}{{end}}')"
      ! docker buildx version`,
    )
    await prints('cat >/tmp/buildkitd.toml', '[registry."nobody.example"]\n  mirrors = ["nowhere.example"]\n')
    const own = inputs(
      'replicas=2\nloadbalance=random\nrootless=true\ndefault-load=true\nbuildkitd-config=/tmp/buildkitd.toml',
    )
    use = await job.use({
      ...own,
      registry: 'true',
      'registry-mirrors': `mirrored.example=${names.mirror || 'https://registry-1.docker.io'}`,
      builder: own.builder.replace(buildkit, buildkitRootless),
    })
    expect(use.code, use.log).toBe(0)
  })

  it('are made by one that is fetched, which later commands of the job have', async () => {
    expect(place.page.count(buildxPath(BUILDX))).toBe(1)
    expect(await prints('docker buildx version')).toContain(BUILDX)
    expect((await prints('docker buildx inspect')).match(/^Status: +running$/gm)).toHaveLength(2)
  })

  it('build without a privileged pod, with what their buildkitd.toml says of registries', async () => {
    expect(
      await prints("kubectl get pods --output jsonpath='{.items[*].spec.containers[*].securityContext}'"),
    ).not.toContain('privileged')
    await prints(`docker tag ${web} $KIND_IN_DIND_REGISTRY/web:ci && docker push --quiet $KIND_IN_DIND_REGISTRY/web:ci`)
    // From a registry that there is only by its mirror, from Docker Hub by the engine's own, and from the job's registry.
    const folder = await context(
      'rootless',
      `FROM mirrored.example/${web.includes('/') ? web : `library/${web}`} AS mirrored
      FROM ${web} AS hub
      FROM ${use.outputs['registry']}/web:ci
      COPY --from=mirrored /etc/passwd /mirrored
      COPY --from=hub /etc/passwd /hub
      RUN cat /mirrored /hub /proc/self/uid_map`,
    )
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
    const pods = new Set<string>()
    for (let left = 20; left > 0 && pods.size < 2; left--) {
      for (const pod of await podsOf(['random', 'random'], 'default')) pods.add(pod)
    }
    expect(pods.size).toBe(2)
  })

  it('load into the engine what says nothing else, by default-load', async () => {
    await prints(`docker buildx build -t said-nothing:ci ${await context('default', SCRATCH)}`)
    await prints('docker image inspect said-nothing:ci')
  })

  it('go like all others, and so does the buildx that was fetched', async () => {
    await expectRemoved(use)
    await prints('! docker buildx version')
  })
})
