/** The place in which the bench measures: a step beside a docker:dind sidecar over TLS, as CI systems make it. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type GitHubJob, startGitHubJob, type Use } from '../e2e/github-job.ts'
import { names, runner } from '../e2e/lab.ts'
import { createPlace, type Ended, type Place } from '../e2e/place.ts'
import { type ImageSet, makeImages } from './images.ts'

const { node } = names.images

export interface Bench {
  readonly place: Place
  readonly job: GitHubJob
  /** The engine's. */
  readonly version: string
  /** Runs a script in the step. @returns milliseconds @throws Error where it fails */
  time(script: string): Promise<number>
  /** A use of the action with these inputs; what else it needs is added. */
  start(inputs: Readonly<Record<string, string>>): Promise<Use>
  /** Four images that are the same at each call. */
  four(): Promise<readonly string[]>
  /** Makes a set of images for each count, of which no two have anything in common. */
  sets(counts: readonly number[]): Promise<readonly ImageSet[]>
  /**
   * Waits until the disk is at rest: ext4 takes no inode that was freed within the last minute, and looks for long for another one
   * (Linux' fs/ext4/ialloc.c, recently_deleted), which a job's fresh nodes know nothing of.
   */
  settle(): Promise<void>
  remove(): Promise<void>
}

/** Milliseconds, a little longer than that minute. */
const REST = 62_000

export async function createBench(): Promise<Bench> {
  const place = await createPlace({ tls: true, images: [node] })
  try {
    const job = await startGitHubJob(place, { id: 'bench' })
    // What both ways need is there before either begins.
    const tools = `install -d /opt/bench && cd /opt/bench && curl -sSfo kind "$KIND" && curl -sSfo kubectl "$KUBECTL" && chmod +x *`
    succeeded(
      await place.run(['sh', '-c', tools], {
        env: {
          KIND: filled(place.page.templates.kind, names.kindVersion),
          KUBECTL: filled(place.page.templates.kubectl, names.kubernetesVersion),
        },
      }),
    )
    let count = 0
    let four: Promise<ImageSet> | undefined
    return {
      place,
      job,
      version: (await place.docker('version', '--format', '{{.Server.Version}}')).trim(),
      time: async script => succeeded(await job.run(`PATH=/opt/bench:$PATH\n${script}`)).took,
      start: async inputs =>
        succeeded(
          await job.use({
            'node-image': node,
            'download-url': `kind=${place.page.templates.kind}\nkubectl=${place.page.templates.kubectl}`,
            ...inputs,
          }),
        ),
      four: async () => {
        four ??= makeImages(place.sidecar, 0, 4)
        return (await four).images
      },
      sets: async counts => {
        const sets: ImageSet[] = []
        for (const images of counts) sets.push(await makeImages(place.sidecar, ++count, images))
        return sets
      },
      settle: async () => {
        await runner.run(['sync'])
        await sleep(REST)
      },
      remove: () => place.remove(),
    }
  } catch (error) {
    await place.remove().catch(() => {})
    throw error
  }
}

function filled(template: string, version: string): string {
  return template.replaceAll('{version}', version).replaceAll('{os}', 'linux').replaceAll('{arch}', 'amd64')
}

function succeeded<T extends Ended>(ended: T): T {
  if (ended.code !== 0) throw new Error(ended.log)
  return ended
}
