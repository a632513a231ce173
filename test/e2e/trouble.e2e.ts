/** What a job meets when something is wrong, or ends too early: one sentence, and nothing left on the engine. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { docker, listing, names, until } from './lab.ts'
import { createPlace, type Place } from './place.ts'

const { node } = names.images

let place: Place
let empty: readonly string[]
let job: GitHubJob
let count = 0
/** What makes a cluster as soon as can be, with its downloads from the place's page. */
let inputs: Readonly<Record<string, string>>

beforeAll(async () => {
  place = await createPlace({ tls: false, images: [node] })
  empty = await listing(place.docker)
  const { kind, kubectl } = place.page.templates
  inputs = { 'node-image': node, 'download-url': `kind=${kind},kubectl=${kubectl}`, wait: '0' }
})

afterAll(() => place?.remove())

beforeEach(async () => {
  job = await startGitHubJob(place, { id: `e2e-${++count}` })
})

// Whatever a test has found out: the next one begins with an empty engine that runs.
afterEach(async () => {
  await docker('unpause', place.sidecar).catch(() => {})
  const left = await listing(place.docker)
  const added = (kind: string): string[] =>
    left.filter(line => !empty.includes(line) && line.startsWith(kind)).map(line => line.slice(kind.length))
  if (added('container ').length > 0) await place.docker('rm', '--force', '--volumes', ...added('container '))
  if (added('network ').length > 0) await place.docker('network', 'rm', ...added('network '))
  if (added('volume ').length > 0) await place.docker('volume', 'rm', '--force', ...added('volume '))
})

/** The errors that GitHub shows with the job: all of them, each as the lines that it has. */
function errorsOf({ log }: Use): string[] {
  return log
    .split('\n')
    .filter(line => line.startsWith('::error::'))
    .map(line => line.slice('::error::'.length).replaceAll('%0A', '\n').replaceAll('%25', '%'))
}

/** A use that must fail, with nothing made; its only error. */
async function refused(
  given: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const before = await listing(place.docker)
  const use = await job.use({ ...inputs, ...given }, env)
  expect(use.code, use.log).toBe(1)
  expect(use.outputs).toEqual({})
  expect(await listing(place.docker), use.log).toEqual(before)
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(await listing(place.docker), post.log).toEqual(before)
  const [error = '', ...more] = errorsOf(use)
  expect(more, use.log).toEqual([])
  expect(error, use.log).not.toMatch(/^\s+at /m)
  return error
}

describe('before anything is made', () => {
  it('hears of every wrong option at once, each with its name', async () => {
    const error = await refused({
      'kubernetes-version': '1.3',
      workers: 'many',
      ports: '70000',
      keep: 'perhaps',
      config: 'kind: Pod\napiVersion: v1',
      name: '---',
      worker: '1',
    })
    const lines = error.split('\n')
    for (const option of ['kubernetes-version', 'workers', 'ports', 'keep', 'config', 'name', 'worker']) {
      expect(
        lines.filter(line => line.startsWith(`${option}: `)),
        error,
      ).toHaveLength(1)
    }
    expect(lines, error).toHaveLength(7)
  })

  it('hears which image the engine lacks', async () => {
    const error = await refused({ images: `${node}\nnobody/built-this:ci`, pull: 'never' })
    expect(error).toMatch(/^images: the engine has no nobody\/built-this:ci, and pull is never;/)
  })

  it('hears that the step has no docker CLI', async () => {
    await job.run('mkdir /only-node && ln -s "$(command -v node)" /only-node/node')
    expect(await refused({}, { PATH: '/only-node' })).toMatch(/no docker CLI on PATH/)
  })

  it('hears that no engine answers, where, and how long it was waited for', async () => {
    const started = performance.now()
    const error = await refused({ 'docker-wait': '2s' }, { DOCKER_HOST: 'tcp://docker:2399' })
    expect(performance.now() - started).toBeGreaterThan(2000)
    expect(error).toMatch(
      /^no Docker engine answers after 2\.0s \(docker-wait\): tcp:\/\/docker:2399 .* refuses connections/,
    )
  })

  it('hears that the socket is not for its user', async () => {
    const socket = '/run/engine.sock'
    const listen = `require('net').createServer().listen('${socket}', () => process.exit())`
    const made = await place.run(['bash', '-ec', `node -e "${listen}" && chmod 600 ${socket} && test -S ${socket}`])
    expect(made.code, made.log).toBe(0)
    job = await startGitHubJob(place, { id: `e2e-${++count}`, user: '1001' })
    const error = await refused({ 'docker-host': `unix://${socket}` })
    expect(error).toMatch(/is not for this user \(uid 1001\)/)
  })

  it('removes nothing and is content where the action never came to its work', async () => {
    const post = await job.post({ inputs, state: {} })
    expect(post.code, post.log).toBe(0)
    expect(await listing(place.docker)).toEqual(empty)
  })
})

describe('a node image that the engine cannot pull', () => {
  it('is named; post leaves nothing of what was made before it', async () => {
    const use = await job.use({ ...inputs, 'node-image': '127.0.0.1:1/no/node:v1.34.4' })
    expect(use.code, use.log).toBe(1)
    expect(errorsOf(use), use.log).toEqual([
      expect.stringMatching(/^node-image: the engine cannot pull 127\.0\.0\.1:1\/no\/node:v1\.34\.4: .+/),
    ])
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(await listing(place.docker), post.log).toEqual(empty)
  })
})

describe('keep', () => {
  it('leaves the cluster, refuses its name to others, and says with which command it goes', async () => {
    const use = await job.use({ ...inputs, name: 'Kept', keep: 'true' })
    expect(use.code, use.log).toBe(0)
    const { name = '' } = use.outputs
    expect(name).toMatch(/^kept-[0-9a-f]{6}$/)
    const kept = await listing(place.docker)
    expect(kept).toContain(`container ${name}-control-plane`)

    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(post.log).toMatch(/^::warning::keep: /m)
    expect(await listing(place.docker), post.log).toEqual(kept)

    const other = await startGitHubJob(place, { id: 'another-job' })
    const refusal = await other.use({ ...inputs, name: 'Kept' })
    expect(refusal.code, refusal.log).toBe(1)
    expect(errorsOf(refusal), refusal.log).toEqual([
      expect.stringMatching(new RegExp(`^name: the engine has a cluster ${name} already \\(of the job owner/app/`)),
    ])
    const otherPost = await other.post(refusal)
    expect(await listing(place.docker), otherPost.log).toEqual(kept)

    const command = /remove it with: (.+)/.exec(use.log)?.[1] ?? ''
    const { code, log } = await job.run(command)
    expect(code, log).toBe(0)
    expect(await listing(place.docker), log).toEqual(empty)
  })
})

describe('a job that is cancelled', () => {
  /** Begins a cluster, and cancels the step when the engine has something of that name. */
  async function cancelWhen(
    sign: RegExp,
    signal: 'SIGINT' | 'SIGTERM',
    meanwhile?: () => Promise<unknown>,
  ): Promise<Use> {
    const running = job.start({ ...inputs, workers: '1' })
    await until(`${sign}`, 60_000, async () => (await listing(place.docker)).find(line => sign.test(line)))
    await meanwhile?.()
    const cancelled = performance.now()
    await running.signal(signal)
    const use = await running.ended
    expect(performance.now() - cancelled, use.log).toBeLessThan(2000)
    expect(use.outputs).toEqual({})
    return use
  }

  it('while the nodes start, by SIGINT: ends within two seconds, and post leaves nothing', async () => {
    const use = await cancelWhen(/^container .*-(control-plane|worker)$/, 'SIGINT')
    expect(use.code, use.log).toBe(130)
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
    expect(await listing(place.docker), post.log).toEqual(empty)
  })

  it('while the engine creates a node, by SIGTERM: post leaves nothing of what the engine still makes', async () => {
    // The engine goes on when nobody waits for it any more, and lists a node only when it is made; its volume is first.
    // Stopped in the middle, it is not through before post is there.
    const use = await cancelWhen(/^volume [0-9a-f]{64}$/, 'SIGTERM', () => docker('pause', place.sidecar))
    expect(use.code, use.log).toBe(143)
    const posting = job.post(use)
    await until('post asks the engine', 10_000, async () => {
      const asks = `grep --null-data --quiet --line-regexp 'docke[r]' /proc/[0-9]*/cmdline`
      const { code } = await place.run(['bash', '-c', asks])
      return code === 0 || undefined
    })
    await docker('unpause', place.sidecar)
    const post = await posting
    expect(post.code, post.log).toBe(0)
    expect(await listing(place.docker), post.log).toEqual(empty)
  })
})
