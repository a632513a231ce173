/**
 * A cluster as its user wants it: a config of their own, held to CPUs and memory, behind a proxy that nobody answers at, in a
 * network whose DNS has an answer for everything. Its engine answers over TLS at the name docker, which the job has to find;
 * buildx uses it as docker/setup-buildx-action does. Its nodes have containerd 2.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { DOMAIN, OUTSIDE, startDns } from './dns.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createGround, type Ground, type Sidecar } from './place.ts'
import { NODE_PORT } from './web.ts'

const { nodeContainerd2: node, web, buildkit } = names.images
const GIB = 1024 ** 3

/** Nobody listens there. */
const DEAD = 'http://127.0.0.1:9'

const CONFIG = `
kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
featureGates: {AllAlpha: false}
networking: {podSubnet: 10.111.0.0/16}
nodes:
  - role: control-plane
    labels: {tier: one}
    extraPortMappings: [{containerPort: 30081, hostPort: 31081}]
  - role: worker
    labels: {tier: two}
kubeadmConfigPatches:
  - |
    kind: ClusterConfiguration
    apiServer:
      certSANs: [api.example]
      extraArgs: {event-ttl: 2h}
`

let ground: Ground
let sidecar: Sidecar
let before: readonly string[]
let job: GitHubJob
let use: Use
let inputs: Readonly<Record<string, string>>
/** The nodes' names, the control plane first. */
let nodes: readonly [string, string]

beforeAll(async () => {
  ground = await createGround()
  sidecar = await ground.startSidecar('docker', {
    tls: true,
    images: [node, web, buildkit],
    flags: await startDns(ground),
  })
  const step = await ground.startStep('step', {
    // The page is for NO_PROXY as any host of the user's own network is; the engine, which comes to be, is not.
    variables: { HTTP_PROXY: DEAD, HTTPS_PROXY: DEAD, NO_PROXY: new URL(ground.page.templates.kind).hostname },
    certificates: sidecar,
  })
  before = await listing(sidecar.docker)
  job = await startGitHubJob(step, { id: 'e2e' })
  const { kind, kubectl } = ground.page.templates
  inputs = { 'node-image': node, 'download-url': `kind=${kind}\nkubectl=${kubectl}` }
  use = await job.use({
    ...inputs,
    config: CONFIG,
    cpus: '1',
    memory: '2Gi',
    ports: `${NODE_PORT}\n127.0.0.1:31082:30082`,
    images: web,
  })
  expect(use.code, use.log).toBe(0)
  nodes = [`${use.outputs['name']}-control-plane`, `${use.outputs['name']}-worker`]
})

afterAll(() => ground?.remove())

/** What a later step prints; it must succeed. */
async function prints(script: string, input?: string): Promise<string> {
  const { code, stdout, log } = await job.run(script, input === undefined ? {} : { input })
  expect(code, log).toBe(0)
  return stdout.trim()
}

/** A pod of one container of the web image, for kubectl. */
function pod(name: string, given: { readonly command?: string[]; readonly resources?: object }): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      containers: [{ name, image: web, imagePullPolicy: 'Never', ...given }],
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 0,
    },
  }
}

describe('a config of the user', () => {
  it('stands: roles, labels, networking, feature gates and a patch that names no version', async () => {
    const table = 'custom-columns=N:.metadata.name,L:.metadata.labels.tier,C:.spec.podCIDR'
    const rows = (await prints(`kubectl get nodes --no-headers --output ${table}`)).split('\n')
    expect(rows.map(row => row.split(/\s+/)).sort()).toEqual([
      [nodes[0], 'one', expect.stringMatching(/^10\.111\./)],
      [nodes[1], 'two', expect.stringMatching(/^10\.111\./)],
    ])
    const command = await prints(
      `kubectl get pods --namespace kube-system --selector component=kube-apiserver --output jsonpath='{..command}'`,
    )
    expect(command).toContain('--event-ttl=2h')
    expect(command).toContain('--feature-gates=AllAlpha=false')
  })

  it('has its names in the certificate, and so has this program', async () => {
    const script = `
      const { host, port } = new URL(process.env.KIND_IN_DIND_SERVER)
      const [hostname] = host.split(':')
      const socket = require('tls').connect({ host: hostname, port, rejectUnauthorized: false }, () => {
        console.log(socket.getPeerCertificate().subjectaltname)
        socket.end()
      })`
    const served = (await prints(`node -e "$(cat)"`, script)).split(', ')
    for (const name of ['DNS:api.example', 'DNS:docker', 'DNS:localhost', 'IP Address:127.0.0.1']) {
      expect(served).toContain(name)
    }
  })

  it('has its ports published beside those of the option; an address that only the engine reaches is a warning', async () => {
    const published = await sidecar.docker('port', nodes[0])
    expect(published).toMatch(/^30081\/tcp -> 0\.0\.0\.0:31081$/m)
    expect(published).toMatch(/^30082\/tcp -> 127\.0\.0\.1:31082$/m)
    expect(annotations(use, 'warning'), use.log).toEqual([
      expect.stringMatching(/^ports: 30082 is published at 127\.0\.0\.1 of the engine/),
    ])
  })
})

describe('cpus and memory', () => {
  it('are what every node offers to pods, in the cluster, in the outputs and in the log', async () => {
    const table = 'custom-columns=N:.metadata.name,C:.status.allocatable.cpu,M:.status.allocatable.memory'
    const rows = (await prints(`kubectl get nodes --no-headers --output ${table}`)).split('\n')
    expect(rows.map(row => row.split(/\s+/)).sort()).toEqual(nodes.map(name => [name, '1', '2Gi']))
    expect(use.outputs).toMatchObject({ cpus: '1', memory: '2Gi' })
    for (const name of nodes) expect(use.log).toMatch(new RegExp(`for pods on ${name} +1 CPU and 2 GiB`))
    expect(use.log).toMatch(/the engine in all +\d+ CPUs and [\d.]+ GiB/)
  })

  it("hold every node's container to that and its reserve, without swap", async () => {
    const format = '{{.HostConfig.NanoCpus}} {{.HostConfig.Memory}} {{.HostConfig.MemorySwap}}'
    const limits = await sidecar.docker('inspect', '--format', format, ...nodes)
    expect(limits.trim().split('\n')).toEqual(nodes.map(() => `1500000000 ${2.5 * GIB} ${2.5 * GIB}`))
  })

  it('leave a pod that wants more CPU than any node has unscheduled, and a pod that takes too much memory dead, alone', async () => {
    const limits = (memory: string): object => ({ limits: { cpu: '100m', memory } })
    const pods = [
      pod('greedy', { resources: { requests: { cpu: '1100m' } } }),
      pod('neighbour', { resources: limits('64Mi') }),
      pod('hungry', { command: ['tail', '/dev/zero'], resources: limits('64Mi') }),
    ]
    await prints('kubectl create --filename -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods }))
    await prints(`
      state='{.status.containerStatuses[0].state'
      kubectl wait pod/neighbour --for condition=Ready --timeout 1m
      kubectl wait pod/hungry --for jsonpath="$state.terminated.reason}"=OOMKilled --timeout 1m
      kubectl wait pod/greedy --for 'jsonpath={.status.conditions[?(@.type=="PodScheduled")].reason}'=Unschedulable --timeout 1m`)
    expect(
      await prints(`kubectl get events --field-selector reason=FailedScheduling --output jsonpath='{..message}'`),
    ).toMatch(/Insufficient cpu/)
    expect(await prints(`kubectl get pod greedy --output jsonpath='{.status.phase}'`)).toBe('Pending')
    const neighbour = `{.status.containerStatuses[0].ready} {.spec.nodeName}`
    const where = await prints(`kubectl get pod neighbour --output jsonpath='${neighbour}'`)
    expect(where).toBe(`true ${await prints(`kubectl get pod hungry --output jsonpath='{.spec.nodeName}'`)}`)
  })
})

describe("search domains of the engine's network, below which DNS has everything", () => {
  it("come with the engine's containers", async () => {
    const resolv = await sidecar.docker(
      'run',
      '--rm',
      '--network',
      use.outputs['network'] ?? '',
      web,
      'cat',
      '/etc/resolv.conf',
    )
    expect(resolv).toMatch(new RegExp(`^search ${DOMAIN}$`, 'm'))
  })

  it('do not get between pods and the names of the cluster, nor those outside of it', async () => {
    // ping tells the address first; nobody answers at these.
    const resolved = (name: string): Promise<string> =>
      prints(`kubectl exec neighbour -- sh -c 'ping -c 1 -W 1 ${name} | head -n 1'`)
    expect(await resolved('kubernetes.default')).toContain('(10.96.0.1)')
    expect(await resolved('kubernetes.default.svc.cluster.local')).toContain('(10.96.0.1)')
    expect(await resolved(OUTSIDE.name)).toContain(`(${OUTSIDE.address})`)
    expect(
      await prints('kubectl exec neighbour -- wget -q -O - --no-check-certificate https://kubernetes.default/version'),
    ).toContain(names.kubernetesVersion)
  })
})

describe('a dead proxy', () => {
  it('is passed by on the way to the cluster and the engine, by every later command', async () => {
    expect(await prints('kubectl get --raw /readyz && docker version --format ok')).toBe('okok')
    expect(job.env['HTTPS_PROXY']).toBe(DEAD)
    const subnet = (
      await sidecar.docker(
        'network',
        'inspect',
        use.outputs['network'] ?? '',
        '--format',
        '{{(index .IPAM.Config 0).Subnet}}',
      )
    ).trim()
    for (const variable of ['NO_PROXY', 'no_proxy']) {
      const around = job.env[variable]?.split(',')
      expect(around).toEqual(
        expect.arrayContaining(['docker', ...nodes, subnet, '.svc', new URL(ground.page.templates.kind).hostname]),
      )
    }
  })

  it('is the proxy of the nodes, too, but for the engine, the nodes, their networks and services', async () => {
    for (const name of nodes) {
      const lines = (await sidecar.docker('exec', name, 'env')).split('\n')
      expect(lines).toContain(`HTTPS_PROXY=${DEAD}`)
      expect(lines).toContain(`http_proxy=${DEAD}`)
      const around = lines
        .find(line => line.startsWith('NO_PROXY='))
        ?.slice('NO_PROXY='.length)
        .split(',')
      expect(around).toEqual(expect.arrayContaining(['docker', ...nodes, '10.96.0.0/16', '10.111.0.0/16', '.svc']))
    }
  })
})

describe('an engine with TLS that was found by its name', () => {
  it('is in the variables of later commands, all of them', () => {
    expect(use.log).toContain('found by the name docker')
    expect(job.env).toMatchObject({
      DOCKER_HOST: 'tcp://docker:2376',
      DOCKER_TLS_VERIFY: '1',
      DOCKER_CERT_PATH: '/certs/client',
    })
  })

  it('gets a builder as docker/setup-buildx-action makes it', async () => {
    const meanwhile = await listing(sidecar.docker)
    // What that action's main does where the default context has TLS data, then what a job does, then its post.
    const exported = await prints(`
      docker context inspect --format '{{json .TLSMaterial}}' default | grep -q key.pem
      docker context create buildx-context >&2
      docker buildx create --name builder-1 --driver docker-container --driver-opt image=${buildkit} --use buildx-context >&2
      docker buildx inspect --bootstrap --builder builder-1 >&2
      mkdir context && echo built >context/page && printf 'FROM scratch\\nCOPY page /\\n' >context/Dockerfile
      docker buildx build --output type=local,dest=out context >&2
      cat out/page
      docker buildx rm builder-1 >&2
      docker context rm buildx-context >&2`)
    expect(exported).toBe('built')
    expect(await listing(sidecar.docker)).toEqual(meanwhile)
  })
})

describe('what cannot be had is refused before anything is made', () => {
  const config = (more: string): string => `kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n${more}`
  const cases: Readonly<Record<string, [Readonly<Record<string, string>>, RegExp]>> = {
    "containerd's registries of old": [
      {
        config: config(
          `containerdConfigPatches:\n  - |\n    [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\n      endpoint = ["http://mirror:5000"]\n`,
        ),
      },
      /^config: containerdConfigPatches sets registry\.mirrors .* give mirrors as registry-mirrors \(docker\.io=https:/,
    ],
    'several control planes on a remote engine': [
      { config: config('nodes: [{role: control-plane}, {role: control-plane}]') },
      /^config: 2 control planes need an engine on this machine; kind picks the load balancer's port here/,
    ],
    'more than the engine has': [
      { cpus: '64', memory: '900Gi' },
      /^cpus: 64 is more than the engine's \d+\nmemory: 900 GiB is more than the engine's [\d.]+ GiB$/,
    ],
    'too little for the control plane': [
      { cpus: '500m', memory: '256Mi' },
      /^cpus: 0\.5 is too little .* give at least 1\nmemory: 256 MiB is too little .* give at least 1 GiB$/,
    ],
  }

  it.each(Object.entries(cases))('%s', async (_, [given, sentence]) => {
    const there = await listing(sidecar.docker)
    const refused = await job.use({ ...inputs, ...given })
    expect(refused.code, refused.log).toBe(1)
    expect(annotations(refused, 'error'), refused.log).toEqual([expect.stringMatching(sentence)])
    expect(refused.outputs).toEqual({})
    expect(await listing(sidecar.docker), refused.log).toEqual(there)
  })
})

it('goes after the job, whatever was made of it', async () => {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(await listing(sidecar.docker), post.log).toEqual(before)
})
