/**
 * Faults for real: each ends in time with its cause named, and nothing of it stays. There are two engines, each with a step of its
 * own, so that one does its work while the other is waited for.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { kindPath } from '../release-page.ts'
import { annotations, type GitHubJob, type RunningUse, startGitHubJob, type Use } from './github-job.ts'
import { docker, listing, names, until } from './lab.ts'
import { createGround, type Ended, engineVariables, type Ground, prepare, type Sidecar, type Step } from './place.ts'

const { node, web } = names.images
const { kind } = names.tools

/** The disk under the first engine, in KiB: a few GiB, so that it can be full. */
const DISK = 5 * 1024 ** 2

/** An engine, and where the jobs run that use it. */
interface Place {
  readonly sidecar: Sidecar
  readonly step: Step
  /** What the engine has from the beginning. */
  readonly empty: readonly string[]
  readonly inputs: Readonly<Record<string, string>>
}

let ground: Ground
let first: Place
let second: Place

beforeAll(async () => {
  const files = Object.fromEntries(
    ['/second', '/stalls'].map(folder => [`${folder}${kindPath(names.kindVersion)}`, { file: kind }]),
  )
  ground = await createGround({ files })
  const disk = ['--mount', `type=tmpfs,destination=/var/lib/docker,tmpfs-size=${DISK * 1024}`]
  ;[first, second] = await Promise.all([createPlace('docker', '', disk), createPlace('docker2', '/second', [])])
})

afterAll(() => ground?.remove())

/**
 * @param name the engine's
 * @param folder where the release page has kind for the place
 */
async function createPlace(name: string, folder: string, flags: readonly string[]): Promise<Place> {
  const sidecar = await ground.startSidecar(name, { aliases: [name], tls: false, images: [node, web], flags })
  const step = await ground.startStep(`step-of-${name}`, { variables: engineVariables(name, false) })
  return { sidecar, step, empty: await listing(sidecar.docker), inputs: inputsOf(folder) }
}

function inputsOf(folder: string): Readonly<Record<string, string>> {
  const { kubectl } = ground.page.templates
  const template = `${ground.page.url}${folder}/{version}/kind-{os}-{arch}`
  return { 'node-image': node, 'download-url': `kind=${template},kubectl=${kubectl}`, wait: '0' }
}

let count = 0
const startJob = ({ step }: Place): Promise<GitHubJob> => startGitHubJob(step, { id: `fault-${++count}` })

const nodeOf = (line: string): string | undefined => /^container (.*-control-plane)$/.exec(line)?.[1]
const isRecord = (line: string): boolean => line.startsWith('volume kind-in-dind-')

/** Begins a cluster, and does something to it when its node is there. */
async function startUntilNode(
  job: GitHubJob,
  { sidecar, inputs }: Place,
  fault: (node: string) => Promise<unknown>,
): Promise<Use> {
  const running = job.start(inputs)
  const found = await until('the node', 90_000, async () =>
    (await listing(sidecar.docker)).map(nodeOf).find(name => name),
  )
  await fault(found)
  return running.ended
}

/** Begins a cluster, and does something to it when kubeadm works in its node: kind gives a node's boot half a minute of its own. */
function startUntilKubeadm(job: GitHubJob, place: Place, fault: (node: string) => Promise<unknown>): Promise<Use> {
  return startUntilNode(job, place, async name => {
    await until('kubeadm', 60_000, () => place.sidecar.docker('exec', name, 'pgrep', '--exact', 'kubeadm'))
    await fault(name)
  })
}

async function leavesNothing(job: GitHubJob, { sidecar, empty }: Place, use: Use): Promise<Ended> {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(annotations(post, 'warning'), post.log).toEqual([])
  expect(await listing(sidecar.docker), post.log).toEqual(empty)
  return post
}

function errorOf(use: Use): string {
  expect(use.code, use.log).toBe(1)
  const errors = annotations(use, 'error')
  expect(errors, use.log).toHaveLength(1)
  return errors[0] ?? ''
}

/** Lets the action's program have a clock that is off, by milliseconds; what others in the step read is right. */
async function setClock(job: GitHubJob, { step }: Place, off: number): Promise<void> {
  const program = `const Right = Date
    globalThis.Date = class extends Right {
      static now() { return Right.now() + ${off} }
      constructor(...given) { super(...(given.length === 0 ? [Right.now() + ${off}] : given)) }
    }`
  await step.run(['sh', '-c', 'cat >/clock.mjs'], { input: program })
  Object.assign(job.env, { NODE_OPTIONS: '--import=/clock.mjs' })
}

const HOUR = 3_600_000

describe.concurrent('beside the one engine', () => {
  let job: GitHubJob
  beforeEach(async () => {
    job = await startJob(first)
  })

  it.sequential.each([
    ['sends half', { kind: 'short' }],
    ['breaks off', { kind: 'cut' }],
  ] as const)('a download that %s: is named, and nothing is made', async (_, fault) => {
    const { step, inputs } = first
    ground.page.fault(kindPath(names.kindVersion), fault)
    const before = await prepare(step, 'rm -rf /__t/* && ls /__t')
    const use = await job.use(inputs)
    ground.page.fault(kindPath(names.kindVersion), undefined)
    await leavesNothing(job, first, use)
    expect(errorOf(use)).toMatch(/^download-url: .*kind/)
    expect(await prepare(step, 'find /__t -type f')).toBe(before)
  })

  it.sequential('DNS that does not answer: is waited for as long as docker-wait says, and named', async () => {
    const { step, inputs } = first
    const before = await prepare(step, 'cat /etc/resolv.conf; echo "nameserver 192.0.2.1" >/etc/resolv.conf')
    const use = await job.use({ ...inputs, 'docker-wait': '5s' })
    await step.run(['sh', '-c', 'cat >/etc/resolv.conf'], { input: `${before}\n` })
    await leavesNothing(job, first, use)
    expect(errorOf(use)).toMatch(
      /^no Docker engine answers after 5\.0s \(docker-wait\): tcp:\/\/docker:2375 .*nothing resolves/,
    )
    expect(use.took).toBeLessThan(60_000)
  })

  it.sequential("a clock of the engine that is an hour ahead of the step's: is named before anything is made", async () => {
    await setClock(job, first, -HOUR)
    const use = await job.use(first.inputs)
    await leavesNothing(job, first, use)
    expect(errorOf(use)).toMatch(/^the engine's clock is (59m\d\ds|1h00m) ahead of this step's, .* \(NTP\)$/)
    expect(use.log).not.toContain('Create the cluster')
  })

  it.sequential('a node that is killed in the middle of kubeadm: is named, with how it ended', async () => {
    const use = await startUntilKubeadm(job, first, name => first.sidecar.docker('kill', name))
    await leavesNothing(job, first, use)
    expect(errorOf(use)).toMatch(/^node .*-control-plane: exited, exit code 137$/m)
  })

  it.sequential("the engine's disk that is full: is named, and has its space back afterwards", async () => {
    const { sidecar, inputs } = first
    const inside = (script: string): Promise<string> => docker('exec', sidecar.name, 'sh', '-c', script)
    const used = async (): Promise<number> =>
      Number(await inside('df -k /var/lib/docker | tail -n 1 | awk "{print \\$3}"'))
    const fill = (megabytes: number): Promise<string> =>
      inside(`dd if=/dev/zero bs=1M count=${megabytes} >>/var/lib/docker/filler || true`)
    const before = await used()
    // As much as the look before a creation lets pass; the rest while it goes on.
    await fill(Math.max(0, Math.floor((DISK - before) / 1024) - 2300))
    const running = job.start(inputs)
    await until('the record', 60_000, async () => (await listing(sidecar.docker)).find(isRecord))
    await fill(3000)
    const use = await running.ended
    await inside('rm /var/lib/docker/filler')
    await leavesNothing(job, first, use)
    expect(errorOf(use)).toMatch(/^the disk of the engine is full: /m)
    expect((await used()) - before).toBeLessThan(50_000)
  })

  it.sequential('an engine that others clean with docker prune: the cluster is left alone, and goes with its record gone', async () => {
    const { sidecar } = first
    const prune = async (): Promise<void> => {
      await sidecar.docker('system', 'prune', '--all', '--force', '--volumes')
      await sidecar.docker('volume', 'prune', '--all', '--force')
    }
    const use = await startUntilNode(job, first, prune)
    expect(use.code, use.log).toBe(0)
    await prune()
    const left = await listing(sidecar.docker)
    expect(left.filter(isRecord)).toEqual([])
    expect(left.map(nodeOf).filter(name => name)).toHaveLength(1)
    const { code, log } = await job.run('kubectl get --raw /readyz')
    expect(code, log).toBe(0)
    await leavesNothing(job, first, use)
  })

  it.sequential("a clock of the step that is an hour ahead: the cluster's age and end are told by the engine's", async () => {
    const { sidecar, inputs } = first
    await setClock(job, first, HOUR)
    const use = await job.use({ ...inputs, images: web, lifetime: '30m' })
    expect(use.code, use.log).toBe(0)
    const format = '{{index .Labels "kind-in-dind.created"}} {{index .Labels "kind-in-dind.expiry"}}'
    const record = (await listing(sidecar.docker)).find(isRecord)?.split(' ')[1] ?? ''
    const [created = 0, expiry = 0] = (await sidecar.docker('volume', 'inspect', '--format', format, record))
      .split(' ')
      .map(Number)
    expect(Math.abs(created - Date.now() / 1000)).toBeLessThan(300)
    expect(expiry - created).toBe(1800)
    // It would be over by the step's clock, and is not: nobody removes it.
    const other = await startJob(first)
    await setClock(other, first, HOUR)
    Object.assign(other.env, { PATH: job.env['PATH'] })
    const stale = await other.run('kind-in-dind down --stale')
    expect(stale.log).toContain('There is nothing to remove')
    await failByMemory(job)
    await breakRemoval(job)
    const post = await leavesNothing(job, first, use)
    expect(post.log).toMatch(/pod default\/hungry: .*OOMKilled, exit code 137/)
    expect(await prepare(first.step, 'cat /wrapped/asked')).toBe('rm\nrm\nrm')
  })

  /** A pod that takes more memory than its limit. The job fails by it. */
  async function failByMemory(running: GitHubJob): Promise<void> {
    const container = {
      ...{ name: 'hungry', image: web, imagePullPolicy: 'Never', command: ['tail', '/dev/zero'] },
      resources: { limits: { memory: '64Mi' } },
    }
    const spec = { restartPolicy: 'Never', terminationGracePeriodSeconds: 0, containers: [container] }
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'hungry' }, spec }
    const { code, log } = await running.run(
      `until kubectl get serviceaccount default; do sleep 0.2; done
      kubectl create --filename -
      kubectl wait pod/hungry --for jsonpath='{.status.containerStatuses[0].state.terminated.reason}'=OOMKilled --timeout 2m
      exit 42`,
      { input: JSON.stringify(pod) },
    )
    expect(code, log).toBe(42)
  }

  /** Lets `docker rm` fail once, and hang once. */
  async function breakRemoval(running: GitHubJob): Promise<void> {
    const real = await prepare(first.step, 'command -v docker')
    const wrapper = `#!/bin/sh
if [ "$1" = rm ]; then
  echo rm >>/wrapped/asked
  case $(wc -l </wrapped/asked) in
    1)
      echo 'Error response from daemon: driver failed to remove root filesystem: device or resource busy' >&2
      exit 1
      ;;
    2) exec sleep 600 ;;
  esac
fi
exec ${real} "$@"
`
    await first.step.run(['sh', '-c', 'mkdir -p /wrapped && cat >/wrapped/docker && chmod +x /wrapped/docker'], {
      input: wrapper,
    })
    Object.assign(running.env, { PATH: `/wrapped:${running.env['PATH']}` })
  }
})

describe.concurrent('beside the other engine', () => {
  let job: GitHubJob
  /** Waits for a page that stalls, while the engine has its faults. */
  let stalled: { readonly job: GitHubJob; readonly running: RunningUse }

  beforeAll(async () => {
    ground.page.fault(`/stalls${kindPath(names.kindVersion)}`, { kind: 'stall' })
    const waiting = await startJob(second)
    // A cache of its own: the other jobs wait for nobody who installs the same kind.
    Object.assign(waiting.env, { RUNNER_TOOL_CACHE: '/tmp/stalls' })
    stalled = { job: waiting, running: waiting.start({ ...inputsOf('/stalls'), 'kind-version': names.kindVersion }) }
  })

  beforeEach(async () => {
    job = await startJob(second)
  })

  // Whatever a test has found out: the next one begins with an engine that runs.
  afterEach(async () => {
    await docker('unpause', second.sidecar.name).catch(() => {})
    await start()
  })

  async function start(): Promise<void> {
    await docker('start', second.sidecar.name)
    await until('the engine', 60_000, () => second.sidecar.docker('version', '--format', '{{.Server.Version}}'))
  }

  it.sequential('an engine that hangs: is given up, and is named; post leaves nothing when it is back', async () => {
    const { sidecar } = second
    const use = await startUntilKubeadm(job, second, () => docker('pause', sidecar.name))
    await docker('unpause', sidecar.name)
    await leavesNothing(job, second, use)
    expect(errorOf(use)).toMatch(/the engine has not answered for 1m\d\ds/)
    expect(errorOf(use)).toMatch(/^the engine at tcp:\/\/docker2:2375 is gone: it does not answer \(ETIMEDOUT\) now/m)
    expect(use.took).toBeLessThan(180_000)
  })

  it.sequential('a download that stalls: is tried again, given up and named, and nothing is made', async () => {
    const use = await stalled.running.ended
    expect(errorOf(use)).toMatch(
      /^download-url: kind v\S+ cannot be downloaded: \S+ sent nothing for 20\.0s; try again, name a mirror as download-url/,
    )
    expect(use.took).toBeLessThan(150_000)
    await leavesNothing(stalled.job, second, use)
  })

  it.sequential('an engine that is killed: is named at once; post leaves nothing when it is back', async () => {
    const { sidecar } = second
    let killed = 0
    const use = await startUntilKubeadm(job, second, async () => {
      await docker('kill', sidecar.name)
      killed = performance.now()
    })
    expect(performance.now() - killed, use.log).toBeLessThan(45_000)
    expect(errorOf(use)).toMatch(/^the engine at tcp:\/\/docker2:2375 is gone: it .* now, and has answered before/m)
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(annotations(post, 'warning'), post.log).toEqual([expect.stringMatching(/does not tell what is left/)])
    await start()
    await leavesNothing(job, second, use)
  })
})
