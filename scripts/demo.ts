/** The demo: what a job of a CI system sees, played in containers on the lab's engine. */
import { formatDuration } from '../src/lib/duration.ts'
import { startGitHubJob } from '../test/e2e/github-job.ts'
import { listing, names } from '../test/e2e/lab.ts'
import { createPlace, type Ended, type Place } from '../test/e2e/place.ts'
import { NODE_PORT, webManifest } from '../test/e2e/web.ts'

const { node, web } = names.images
const started = performance.now()

function say(line: string): void {
  process.stdout.write(`${formatDuration(performance.now() - started).padStart(6)}  ${line}\n`)
}

/** What a step prints, as GitHub shows it: groups by their titles. */
function show(line: string): void {
  if (line === '::endgroup::') return
  process.stdout.write(`        | ${line.replace(/^::(group|warning|error)::/, '')}\n`)
}

/** Says what comes, does it, and says how long it took. */
async function stage<T>(title: string, work: () => Promise<T>): Promise<T> {
  say(title)
  const begun = performance.now()
  const result = await work()
  say(`... ${formatDuration(performance.now() - begun)}`)
  return result
}

/** @throws Error where a step failed; what it printed was shown */
function succeeded<T extends Ended>(step: T): T {
  if (step.code !== 0) throw new Error(`the step failed with exit code ${step.code}`)
  return step
}

async function demo(place: Place): Promise<void> {
  const before = await listing(place.docker)
  const job = await startGitHubJob(place, { id: 'demo', onLine: show })
  const step = (title: string, script: string, input = ''): Promise<Ended> =>
    stage(title, async () => succeeded(await job.run(script, { input })))

  const use = await stage(
    'The step `uses: OWNER/kind-in-dind@v1` asks for a worker, a NodePort and an image:',
    async () =>
      succeeded(
        await job.use({
          workers: '1',
          ports: `${NODE_PORT}`,
          images: web,
          'node-image': node,
          'download-url': `kind=${place.page.templates.kind},kubectl=${place.page.templates.kubectl}`,
        }),
      ),
  )
  await step('$ kubectl get nodes', 'kubectl get nodes --output wide')
  await step(
    '$ kubectl apply: two web servers of that image, one on each node',
    'kubectl apply --filename - && kubectl rollout status deployment/web --timeout 2m',
    webManifest(web),
  )
  await step(
    `$ curl http://$KIND_IN_DIND_PORT_${NODE_PORT}`,
    `echo "http://$KIND_IN_DIND_PORT_${NODE_PORT}:"
    curl --fail --silent --retry 9 --retry-all-errors "http://$KIND_IN_DIND_PORT_${NODE_PORT}"`,
  )
  await stage('The job ends, and the post step takes everything down:', async () => succeeded(await job.post(use)))

  const after = await listing(place.docker)
  if (after.join() !== before.join()) throw new Error(`the engine has other things than before: ${after.join(', ')}`)
  say('The engine has exactly the containers, networks and volumes that it had before.')
}

say(
  'A place as a CI system makes it: the job in a container, beside it a docker:dind sidecar called docker, over TLS ...',
)
const making = createPlace({ tls: true, images: [node, web] })
let interrupted = false
process.once('SIGINT', async () => {
  interrupted = true
  say('Interrupted; removing the place ...')
  await (await making.catch(() => undefined))?.remove()
  process.exit(130)
})

const failure = await making
  .then(place => {
    say('... is ready: the engine has a node image and an image of a web server; kind and kubectl come by download.')
    return demo(place)
  })
  .catch((error: Error) => error)
// What fails after an interrupt fails for that, and the place is being removed.
if (!interrupted) {
  await (await making.catch(() => undefined))?.remove()
  say(failure ? `Failed: ${failure.message}` : 'The place is gone too.')
  if (failure) process.exitCode = 1
}
