/** A job from its first step to its end, as far as it is the same in every place. */
import { expect, it } from 'vitest'
import { annotations, type GitHubJob, type Use } from './github-job.ts'
import { type DockerCli, listing, names } from './lab.ts'
import type { Ended, Ground } from './place.ts'
import { NODE_PORT, webManifest } from './web.ts'

const { node, web } = names.images

/** What a job met. The listings are of its engine: before pre, while the cluster is up, after post. */
export interface Life {
  readonly use: Use
  readonly readyz: Ended
  /** Prints the status with which the NodePort answered. */
  readonly fetched: Ended
  readonly post: Ended
  readonly listings: Readonly<Record<'before' | 'during' | 'after', readonly string[]>>
}

/** The inputs for a cluster of the lab's: no more than the lab's own images and its release page. */
export function labInputs({ page }: Ground): Readonly<Record<string, string>> {
  return { 'node-image': node, 'download-url': `kind=${page.templates.kind},kubectl=${page.templates.kubectl}` }
}

/** Fetches the NodePort from within the step with nothing but Node; the first pod may be ready before its port is. */
const FETCH = `
  const deadline = Date.now() + 30_000
  const url = 'http://' + process.env.KIND_IN_DIND_PORT_${NODE_PORT}
  const fetched = () => fetch(url).then(({ status }) => console.log(status), error => {
    if (Date.now() > deadline) throw error
    setTimeout(fetched, 100)
  })
  fetched()`

/**
 * Lives through a job: pre, a look at the API server, the NodePort of a preloaded image, post.
 *
 * @param meanwhile what else happens while the cluster is up
 */
export async function live(
  given: {
    readonly job: GitHubJob
    readonly engine: DockerCli
    readonly inputs: Readonly<Record<string, string>>
    readonly env?: Readonly<Record<string, string>>
    /** The engine's listing, where it cannot be asked before pre. */
    readonly before?: readonly string[]
  },
  meanwhile: () => Promise<void> = async () => {},
): Promise<Life> {
  const { job, engine, inputs, env } = given
  const before = given.before ?? (await listing(engine))
  const use = await job.use({ ...inputs, ports: `${NODE_PORT}`, images: web }, env)
  expect(use.code, use.log).toBe(0)
  const readyz = await job.run('kubectl get --raw /readyz')
  const fetched = await job.run(
    `kubectl apply --filename - >&2
    kubectl rollout status deployment/web --timeout 2m >&2
    node --eval "${FETCH}"`,
    { input: webManifest(web) },
  )
  const during = await listing(engine)
  await meanwhile()
  const post = await job.post(use)
  return { use, readyz, fetched, post, listings: { before, during, after: await listing(engine) } }
}

/**
 * What holds in every place.
 *
 * @param expected.host by which the step gets to the cluster, as a pattern
 * @param expected.warnings patterns of what pre warns of
 */
export function itHasACluster(
  life: () => Life,
  expected: { readonly host: RegExp; readonly warnings?: readonly RegExp[] },
): void {
  it('gets a cluster and hears of nothing that is not so', () => {
    const { use } = life()
    expect(annotations(use, 'warning'), use.log).toEqual(
      (expected.warnings ?? []).map(warning => expect.stringMatching(warning)),
    )
    expect(use.outputs['host'], use.log).toMatch(expected.host)
  })

  it('reaches the API server', () => {
    const { readyz, use } = life()
    expect(readyz.stdout, readyz.log).toBe('ok')
    expect(new URL(use.outputs['server'] ?? '').hostname).toBe(use.outputs['host'])
  })

  it('fetches a NodePort', () => {
    const { fetched, use } = life()
    expect(fetched.stdout.trim(), fetched.log).toBe('200')
    expect(JSON.parse(use.outputs['ports'] ?? '')).toEqual({
      [NODE_PORT]: expect.stringMatching(new RegExp(`^${use.outputs['host']}:\\d+$`)),
    })
  })

  it('leaves the engine with exactly the containers, networks and volumes that it had', () => {
    const { use, post, listings } = life()
    expect(listings.during).toContain(`container ${use.outputs['name']}-control-plane`)
    expect(post.code, post.log).toBe(0)
    expect(annotations(post, 'warning')).toEqual([])
    expect(listings.after, post.log).toEqual(listings.before)
  })
}

/**
 * A use that must fail, after which post leaves nothing.
 *
 * @param given.made true where something may be made before it fails
 * @returns its only error
 */
export async function refused(given: {
  readonly job: GitHubJob
  readonly engine: DockerCli
  readonly inputs: Readonly<Record<string, string>>
  readonly env?: Readonly<Record<string, string>>
  readonly made?: boolean
}): Promise<{ readonly error: string; readonly use: Use }> {
  const { job, engine, inputs, env, made = false } = given
  const before = await listing(engine)
  const use = await job.use(inputs, env)
  expect(use.code, use.log).toBe(1)
  if (!made) expect(await listing(engine), use.log).toEqual(before)
  const post = await job.post(use)
  expect(post.code, post.log).toBe(0)
  expect(await listing(engine), post.log).toEqual(before)
  const [error = '', ...more] = annotations(use, 'error')
  expect(more, use.log).toEqual([])
  return { error, use }
}
