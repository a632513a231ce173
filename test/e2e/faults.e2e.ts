/** Faults for real: each ends in time with its cause named, and nothing of it stays. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { kindPath } from '../release-page.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { docker, listing, names, until } from './lab.ts'
import { createGround, engineVariables, type Ground, prepare, type Sidecar, type Step } from './place.ts'

const { node } = names.images

/** The disk under the engine, in KiB: a few GiB, so that it can be full. */
const DISK = 5 * 1024 ** 2

let ground: Ground
let sidecar: Sidecar
let step: Step
let job: GitHubJob
let inputs: Readonly<Record<string, string>>
let empty: readonly string[]
let count = 0

beforeAll(async () => {
  ground = await createGround()
  const disk = ['--mount', `type=tmpfs,destination=/var/lib/docker,tmpfs-size=${DISK * 1024}`]
  sidecar = await ground.startSidecar('docker', { tls: false, images: [node], flags: disk })
  step = await ground.startStep('step', { variables: engineVariables('docker', false) })
  empty = await listing(sidecar.docker)
  const { kind, kubectl } = ground.page.templates
  inputs = { 'node-image': node, 'download-url': `kind=${kind},kubectl=${kubectl}`, wait: '0' }
})

afterAll(() => ground?.remove())

beforeEach(async () => {
  job = await startGitHubJob(step, { id: `fault-${++count}` })
})

// Whatever a test has found out: the next one begins with an engine that runs.
afterEach(async () => {
  await docker('unpause', sidecar.name).catch(() => {})
})

const nodeOf = (line: string): string | undefined => /^container (.*-control-plane)$/.exec(line)?.[1]

/** Begins a cluster, and does something to it when its node is there. */
async function startUntilNode(fault: (node: string) => Promise<unknown>): Promise<Use> {
  const running = job.start(inputs)
  const found = await until('the node', 90_000, async () =>
    (await listing(sidecar.docker)).map(nodeOf).find(name => name),
  )
  await fault(found)
  return running.ended
}

async function leavesNothing(use: Use): Promise<void> {
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(annotations(post, 'warning'), post.log).toEqual([])
  expect(await listing(sidecar.docker), post.log).toEqual(empty)
}

function errorOf(use: Use): string {
  expect(use.code, use.log).toBe(1)
  const errors = annotations(use, 'error')
  expect(errors, use.log).toHaveLength(1)
  return errors[0] ?? ''
}

describe('a download', () => {
  it.each([
    ['sends half', { kind: 'short' }],
    ['breaks off', { kind: 'cut' }],
  ] as const)('that %s: is named, and nothing is made', async (_, fault) => {
    ground.page.fault(kindPath(names.kindVersion), fault)
    const before = await prepare(step, 'rm -rf /__t/* && ls /__t')
    const use = await job.use(inputs)
    ground.page.fault(kindPath(names.kindVersion), undefined)
    await leavesNothing(use)
    expect(errorOf(use)).toMatch(/^download-url: .*kind/)
    expect(await prepare(step, 'find /__t -type f')).toBe(before)
  })
})

describe('DNS', () => {
  it('that does not answer: is waited for as long as docker-wait says, and named', async () => {
    const before = await prepare(step, 'cat /etc/resolv.conf; echo "nameserver 192.0.2.1" >/etc/resolv.conf')
    const use = await job.use({ ...inputs, 'docker-wait': '5s' })
    await step.run(['sh', '-c', 'cat >/etc/resolv.conf'], { input: `${before}\n` })
    await leavesNothing(use)
    expect(errorOf(use)).toMatch(
      /^no Docker engine answers after 5\.0s \(docker-wait\): tcp:\/\/docker:2375 .*nothing resolves/,
    )
    expect(use.took).toBeLessThan(60_000)
  })
})

describe('a node', () => {
  it('that is killed in the middle of kubeadm: is named, with how it ended', async () => {
    const use = await startUntilNode(async name => {
      await until('kubeadm', 60_000, () => sidecar.docker('exec', name, 'pgrep', '--exact', 'kubeadm'))
      await sidecar.docker('kill', name)
    })
    await leavesNothing(use)
    expect(errorOf(use)).toMatch(/^node .*-control-plane: exited, exit code 137$/m)
  })
})

describe("the engine's disk", () => {
  it('that is full: is named, and has its space back afterwards', async () => {
    const used = async (): Promise<number> => {
      const [, kilobytes] =
        (await docker('exec', sidecar.name, 'df', '-k', '/var/lib/docker')).split('\n').at(1)?.split(/\s+/).slice(1) ??
        []
      return Number(kilobytes)
    }
    const before = await used()
    const fill = (megabytes: number): Promise<string> =>
      docker(
        'exec',
        sidecar.name,
        'sh',
        '-c',
        `dd if=/dev/zero bs=1M count=${megabytes} >>/var/lib/docker/filler || true`,
      )
    // As much as the look before a creation lets pass; the rest while it goes on.
    await fill(Math.max(0, Math.floor((DISK - before) / 1024) - 2300))
    const running = job.start(inputs)
    await until('the record', 60_000, async () =>
      (await listing(sidecar.docker)).find(line => line.startsWith('volume kind-in-dind-')),
    )
    await fill(3000)
    const use = await running.ended
    await docker('exec', sidecar.name, 'rm', '/var/lib/docker/filler')
    await leavesNothing(use)
    expect(errorOf(use)).toMatch(/^the disk of the engine is full: /m)
    expect((await used()) - before).toBeLessThan(50_000)
  })
})

describe('the engine', () => {
  it('of which `docker rm` fails once is asked again, and the cluster goes', async () => {
    const use = await job.use(inputs)
    expect(use.code, use.log).toBe(0)
    const real = await prepare(step, 'command -v docker')
    const wrapper = `#!/bin/sh
if [ "$1" = rm ] && ! [ -e /wrapped/failed ]; then
  touch /wrapped/failed
  echo 'Error response from daemon: driver failed to remove root filesystem: device or resource busy' >&2
  exit 1
fi
exec ${real} "$@"
`
    await step.run(['sh', '-c', 'mkdir -p /wrapped && cat >/wrapped/docker && chmod +x /wrapped/docker'], {
      input: wrapper,
    })
    Object.assign(job.env, { PATH: `/wrapped:${job.env['PATH']}` })
    await leavesNothing(use)
    expect(await prepare(step, 'ls /wrapped')).toContain('failed')
  })

  // The last one: it is the hardest on the sidecar.
  it('that hangs: is given up, and is named; post leaves nothing when it is back', async () => {
    const use = await startUntilNode(() => docker('pause', sidecar.name))
    await docker('unpause', sidecar.name)
    await leavesNothing(use)
    expect(errorOf(use)).toMatch(/the engine has not answered for 1m\d\ds/)
    expect(use.took).toBeLessThan(180_000)
  })
})
