/** Measures the builder: until it is ready, and builds of four contexts at once, against what people do without this program. */
import { type GitHubJob, startGitHubJob, type Use } from '../e2e/github-job.ts'
import { names } from '../e2e/lab.ts'
import { createPlace, type Ended, type Place } from '../e2e/place.ts'
import type { ReplicaResults } from './builder-report.ts'

const { node, buildkit, web } = names.images
const REPLICAS = [1, 2, 3]

/** A small multi-stage image: one stage works, the other takes what came of it. $ROUND makes every build a new one. */
const DOCKERFILE = `FROM ${web} AS build
ARG ROUND
COPY content /content
RUN echo $ROUND && i=0; while [ $i -lt 200 ]; do sha256sum /content >/sum; i=$((i+1)); done
FROM ${web}
COPY --from=build /sum /sum
`
/** A megabyte for each of four contexts. */
const CONTEXTS = `for name in a b c d; do
  mkdir -p ~/$name && head -c 1000000 /dev/urandom >~/$name/content && cat >~/$name/Dockerfile <<'END'
${DOCKERFILE}END
done`

function succeeded<T extends Ended>(ended: T): T {
  if (ended.code !== 0) throw new Error(ended.log)
  return ended
}

/** A place of its own: its engine has another image to load, and no TLS. */
export function createBuilderPlace(): Promise<Place> {
  return createPlace({ tls: false, images: [node, buildkit, web] })
}

/**
 * Measures with one, two and three replicas on two workers.
 *
 * @param rounds of builds, for each number of replicas
 */
export async function measureBuilder(
  place: Place,
  rounds: number,
  say: (line: string) => void,
): Promise<readonly ReplicaResults[]> {
  const job = await startGitHubJob(place, { id: 'bench' })
  succeeded(await job.run(CONTEXTS))
  const results: ReplicaResults[] = []
  for (const count of REPLICAS) {
    const measured = await measureReplicas(place, job, count, rounds)
    results.push(measured)
    say(`${count} replicas: ${JSON.stringify(measured, (_, value) => (value > 99 ? Math.round(value) : value))}`)
  }
  return results
}

async function measureReplicas(place: Place, job: GitHubJob, count: number, rounds: number): Promise<ReplicaResults> {
  const { kind, kubectl } = place.page.templates
  const start = async (inputs: Readonly<Record<string, string>>): Promise<Use> =>
    succeeded(
      await job.use({
        'node-image': node,
        workers: '2',
        'download-url': `kind=${kind}\nkubectl=${kubectl}`,
        ...inputs,
      }),
    )
  const options = [`image=${buildkit}`, `replicas=${count}`]

  // As it goes without the option: a cluster that has the image, and then the driver's own start.
  const bare = await start({ images: buildkit })
  const driver = succeeded(
    await job.run(
      `docker buildx create --name own --driver kubernetes ${options.map(option => `--driver-opt ${option}`).join(' ')} --bootstrap`,
    ),
  ).took
  succeeded(await job.run('docker buildx rm --keep-daemon own'))
  succeeded(await job.post(bare))

  const use = await start({ builder: options.join('\n') })
  const [, minutes = '0', seconds = ''] = /The builder \S+ is ready after (?:(\d+)m ?)?([\d.]+)s/.exec(use.log) ?? []
  const ours = (Number(minutes) * 60 + Number(seconds)) * 1000
  const builds = { ours: [] as number[], docker: [] as number[] }
  for (let round = 0; round <= rounds; round++) {
    const took = {
      docker: await four(job, 'default', `${count}.${round}`),
      ours: await four(job, '$BUILDX_BUILDER', `${count}.${round}`),
    }
    // The first of each way also pulls the base image.
    if (round === 0) continue
    builds.docker.push(took.docker)
    builds.ours.push(took.ours)
  }
  const used = await job.run(
    'for pod in $(kubectl get pods --output name); do kubectl exec $pod -- buildctl debug histories | wc -l; done',
  )
  succeeded(await job.post(use))
  // The first line is the table's head.
  const pods = succeeded(used)
    .stdout.split('\n')
    .filter(lines => Number(lines) > 1).length
  return { count, ready: { ours, driver }, builds, pods }
}

/** Four contexts at once, each as a new build. @returns milliseconds */
async function four(job: GitHubJob, builder: string, round: string): Promise<number> {
  const one = `docker buildx build --quiet --builder ${builder} --build-arg ROUND=${round} ~/$name`
  return succeeded(
    await job.run(`for name in a b c d; do ${one} & all="$all $!"; done; for p in $all; do wait $p; done`),
  ).took
}
