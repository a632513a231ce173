/**
 * Measures the builder on the lab: until it is ready, and four contexts at once with one, two and three replicas against the
 * default docker driver. Argument: the number of rounds, 3 by default. Runs what dist/ has: scripts/build makes it.
 */
import { startGitHubJob } from '../e2e/github-job.ts'
import { names } from '../e2e/lab.ts'
import { createPlace, type Ended } from '../e2e/place.ts'
import { median, type Samples } from './statistics.ts'

const { node, buildkit, web } = names.images
const REPLICAS = [1, 2, 3]
const rounds = Number(process.argv[2] ?? 3)

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

function succeeded(ended: Ended): Ended {
  if (ended.code !== 0) throw new Error(ended.log)
  return ended
}

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const place = await createPlace({ tls: false, images: [node, buildkit, web] })
try {
  const job = await startGitHubJob(place, { id: 'bench' })
  succeeded(await job.run(CONTEXTS))
  // BuildKit's pods pull the base image from the lab's mirror, as the engine does.
  const { host } = new URL(names.mirror)
  const config = `[registry."docker.io"]\n  mirrors = ["${host}"]\n[registry."${host}"]\n  http = true\n`
  succeeded(await job.run(`cat >/tmp/buildkitd.toml`, { input: config }))
  let builds = 0

  /** Four contexts at once, each as a new build. @returns milliseconds */
  const four = async (builder: string): Promise<number> => {
    const one = `docker buildx build --quiet --builder ${builder} --build-arg ROUND=${++builds} ~/$name`
    return succeeded(
      await job.run(`for name in a b c d; do ${one} & all="$all $!"; done; for p in $all; do wait $p; done`),
    ).took
  }

  const took = new Map<string, number[]>()
  const keep = (what: string, sample: number): void => void took.set(what, [...(took.get(what) ?? []), sample])
  const ready: number[] = []
  for (const replicas of REPLICAS) {
    const use = await job.use({
      'node-image': node,
      workers: '2',
      'download-url': `kind=${place.page.templates.kind}\nkubectl=${place.page.templates.kubectl}`,
      builder: `image=${buildkit}\nreplicas=${replicas}\nbuildkitd-config=/tmp/buildkitd.toml`,
    })
    succeeded(use)
    const seconds = /The builder \S+ is ready after ([\d.]+)s/.exec(use.log)?.[1]
    ready.push(Number(seconds) * 1000)
    // The first of each way also pulls the base image.
    for (const builder of ['default', '$BUILDX_BUILDER']) await four(builder)
    for (let round = 0; round < rounds; round++) {
      keep('docker', await four('default'))
      keep(`${replicas}`, await four('$BUILDX_BUILDER'))
    }
    succeeded(await job.post(use))
  }

  const seconds = (samples: Samples): string => (median(samples) / 1000).toFixed(2)
  const baseline = took.get('docker') ?? []
  say(
    `until the builder is ready, after its image is in the nodes, with 1, 2 and 3 replicas: ${ready.map(ms => (ms / 1000).toFixed(1)).join(', ')} s`,
  )
  say(`four contexts at once, docker driver: ${seconds(baseline)} s (median of ${baseline.length})`)
  for (const replicas of REPLICAS) {
    const samples = took.get(`${replicas}`) ?? []
    say(
      `four contexts at once, ${replicas} replicas: ${seconds(samples)} s, ${(median(samples) / median(baseline)).toFixed(2)} of the docker driver`,
    )
  }
} finally {
  await place.remove()
}
