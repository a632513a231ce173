/** Jobs that are ended too early, on both hosts and one engine; and how all that they touch looks before and after. */
import { mkdtempSync, rmSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { KIND_CLUSTER_LABEL, LABEL, recordName } from '../../src/plan.ts'
import { type Buildkite, startBuildkite } from './buildkite.ts'
import { COMMAND_RAN, type Outcome } from './ends-judge.ts'
import { situation } from './ends-stages.ts'
import { endsAll, type HostName, hookOf, type Run, type Stage } from './ends-table.ts'
import { type EngineEvent, type Matches, type Watch, watchEngine } from './events.ts'
import { type GitHubJob, type RunningUse, startGitHubJob } from './github-job.ts'
import { type DockerCli, docker, listing, names, until } from './lab.ts'
import { labInputs } from './life.ts'
import { createGround, engineVariables, type Ground, prepare, type Sidecar, type Step } from './place.ts'

const { node, web, buildkit: buildkitImage } = names.images

/** How long an engine may take to start again, in milliseconds. */
const START_LIMIT = 180_000

/** The one runner and the one agent of a place: each has one job at a time. */
const RUNNER = 'ends'
const AGENT = 'agent-of-ends'

/** A command that the jobs would run when their cluster is ready; the log shows the command itself, too. */
const COMMAND = 'echo "the command $((20 + 1)) runs"; sleep 300'

/** Makes a builder of the user's own on a host, and all folders that buildx has in time. */
const THEIR_BUILDER = 'for name in gone theirs; do docker buildx create --name $name; done; docker buildx rm gone'

export interface Ends {
  readonly ground: Ground
  readonly sidecar: Sidecar
  readonly step: Step
  /**
   * Runs a job, ends it at its stage, and sees to it that what comes after it has come.
   *
   * @param owner the runner or agent, where it is not the place's own
   */
  run(run: Run, owner?: string): Promise<Outcome>
  /** A GitHub job of the place's runner that is on its way to a stage. */
  begin(stage: Stage): Promise<Begun>
  /** Runs the next job of the runner or agent, which fails as soon as it has looked around. @returns its log */
  next(host: HostName): Promise<string>
  /** The first event of its kind on the engine, which may have happened already. */
  first(matches: Matches): Promise<EngineEvent>
  /** Ends the engine as a crash does, and starts it again. */
  restart(): Promise<void>
  /** All that a job may leave: on the engine, in folders, of processes. */
  look(): Promise<readonly string[]>
  remove(): Promise<void>
}

export interface Begun {
  readonly cluster: string
  readonly job: GitHubJob
  readonly running: RunningUse
  readonly inputs: Readonly<Record<string, string>>
  /** Resolves when it is at its stage. */
  readonly reached: Promise<unknown>
  /** Frees what held it there. */
  release(): Promise<void>
}

export async function createEnds(): Promise<Ends> {
  const ground = await createGround()
  let buildkite: Buildkite | undefined
  let place: Place | undefined
  const remove = async (): Promise<void> => {
    await place?.watch.end()
    await buildkite?.remove()
    await ground.remove()
  }
  try {
    const sidecar = await ground.startSidecar('docker', { tls: false, images: [node, web, buildkitImage] })
    const step = await ground.startStep('step', { variables: engineVariables('docker', false) })
    buildkite = await startBuildkite({
      programs: { sleep: 'sleep' },
      dockerPlugins: { buildx: names.tools.buildx },
      variables: { DOCKER_HOST: await addressOf(sidecar) },
    })
    const made: Place = {
      ...{ ground, sidecar, step, buildkite, watch: watchSidecar(sidecar) },
      gateway: new URL(ground.page.url).hostname,
    }
    place = made
    await makeBystanders(made)
    // What stays for later jobs is there from now on: kind, kubectl's cache, the agent's folders.
    await Promise.all([nextOnGitHub(made), nextOnBuildkite(made)])
    return {
      ...{ ground, sidecar, step, remove },
      run: (run, owner) => (run.host === 'github' ? runOnGitHub(made, run, owner) : runOnBuildkite(made, run, owner)),
      begin: stage => beginOnGitHub(made, stage),
      next: host => (host === 'github' ? nextOnGitHub(made) : nextOnBuildkite(made)),
      look: () => look(made),
      first: matches => made.watch.first(matches),
      restart: async () => {
        await made.watch.end()
        await docker('restart', '--signal', 'KILL', sidecar.name)
        await until('the engine', START_LIMIT, () => sidecar.docker('version'))
        made.watch = watchSidecar(sidecar)
      },
    }
  } catch (error) {
    await remove().catch(() => {})
    throw error
  }
}

interface Place {
  readonly ground: Ground
  readonly sidecar: Sidecar
  readonly step: Step
  readonly buildkite: Buildkite
  /** Of the sidecar's engine; a new one where that started again. */
  watch: Watch
  /** The address of this machine on the ground, at which the engine and both hosts reach what listens there. */
  readonly gateway: string
}

function watchSidecar({ name }: Sidecar): Watch {
  return watchEngine([names.tools.docker, 'exec', name, 'docker'])
}

/** The sidecar's engine as jobs on this machine reach it. */
async function addressOf({ name }: Sidecar): Promise<string> {
  const format = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
  return `tcp://${(await docker('inspect', '--format', format, name)).trim()}:2375`
}

/** What is on the engine and both hosts and must stay, whoever's jobs end there: nothing of it belongs to one that is over. */
async function makeBystanders({ sidecar, step, buildkite }: Place): Promise<void> {
  await prepare(step, `export DOCKER_HOST=${step.variables['DOCKER_HOST']}; ${THEIR_BUILDER}`)
  const made = await buildkite.agent.start({ pipeline: 'theirs', plugins: [], command: THEIR_BUILDER }).ended
  if (made.code !== 0) throw new Error(made.log)
  const runner = `runner-of-${RUNNER}@${(await prepare(step, 'hostname')).trim()}:/__w/_temp`
  const agent = `agent-1/${AGENT}@${hostname()}`
  const later = String(Math.floor(Date.now() / 1000) + 6 * 3600)
  const own = (cluster: string, owner: string, more: Readonly<Record<string, string>> = {}): string[] =>
    Object.entries({
      ...{ [LABEL.cluster]: cluster, [LABEL.owner]: owner, [LABEL.job]: 'another', [LABEL.use]: cluster },
      ...{ [LABEL.expiry]: later, [LABEL.network]: recordName(cluster), [LABEL.containers]: 'control-plane' },
      ...more,
    }).map(([key, value]) => `--label=${key}=${value}`)
  const cluster = async (name: string, labels: readonly string[]): Promise<void> => {
    await sidecar.docker('volume', 'create', ...labels, recordName(name))
    await sidecar.docker('network', 'create', ...labels, recordName(name))
    await nodeOf(name, recordName(name))
  }
  const nodeOf = (name: string, network: string): Promise<string> =>
    sidecar.docker(
      ...[
        'create',
        '--name',
        `${name}-control-plane`,
        '--label',
        `${KIND_CLUSTER_LABEL}=${name}`,
        '--network',
        network,
      ],
      node,
    )
  await cluster('live', own('live', 'of-a-job-that-runs'))
  await cluster('kept-of-runner', own('kept-of-runner', runner, { [LABEL.kept]: 'true' }))
  await cluster('kept-of-agent', own('kept-of-agent', agent, { [LABEL.kept]: 'true' }))
  await sidecar.docker('network', 'create', 'kind')
  await sidecar.docker('volume', 'create', 'kind-in-dind-not-ours')
  await nodeOf('not-ours', 'kind')
}

let jobs = 0

/** What gets nowhere, but comes as far as the look at what other jobs left: its name makes it wait for that. */
const FAILING = { images: 'absent:ci', pull: 'never' }

async function beginOnGitHub(place: Place, stage: Stage, runner = RUNNER): Promise<Begun> {
  const { step } = place
  const cluster = `ends-${++jobs}`
  const tools = `/tools-of-${cluster}`
  const { options, env, line, reached, release } = await situation(place, cluster, stage, async () => {
    await prepare(step, `mkdir ${tools}`)
    return { RUNNER_TOOL_CACHE: tools }
  })
  let printed = (): void => {}
  const said = new Promise<void>(resolve => {
    printed = resolve
  })
  const job = await startGitHubJob(step, {
    ...{ id: cluster, runner },
    onLine: text => line?.test(text) && printed(),
  })
  const running = job.start(options, env)
  const early = running.ended.then(({ log }) => Promise.reject(new Error(`ended before "${stage}": ${log}`)))
  early.catch(() => {})
  return {
    ...{ cluster, job, running, inputs: options },
    reached: Promise.race([reached ?? said, early]),
    release: async () => {
      await release()
      await prepare(step, `rm -rf ${tools}`)
    },
  }
}

async function runOnGitHub(place: Place, run: Run, runner = RUNNER): Promise<Outcome> {
  const { cluster, job, running, reached, release } = await beginOnGitHub(place, run.stage, runner)
  try {
    await reached
    const since = performance.now()
    // When all is ready pre is gone: it is the job that ends.
    if (run.stage !== 'just after ready') await running.signal(run.signal, run.target)
    const removal = untilRemoval(place, cluster, since)
    const use = await running.ended
    const whole = { cluster, code: use.code }
    if (endsAll(run))
      return { ...whole, log: use.log, next: await nextOnGitHub(place, runner), over: 0, removing: undefined }
    const { log } = await job.post(use)
    const over = performance.now() - since
    return { ...whole, log: `${use.log}\n${log}`, next: undefined, over, removing: await removal() }
  } finally {
    await release()
  }
}

async function nextOnGitHub({ ground, step }: Place, runner = RUNNER): Promise<string> {
  const id = `next-${++jobs}`
  const job = await startGitHubJob(step, { id, runner })
  const use = await job.use({ ...labInputs(ground), ...FAILING, name: id })
  return `${use.log}\n${(await job.post(use)).log}`
}

async function runOnBuildkite(place: Place, run: Run, agentId = AGENT): Promise<Outcome> {
  const { agent, plugin } = place.buildkite
  const tools = mkdtempSync(join(tmpdir(), 'ends-tools-'))
  const cluster = `ends-${++jobs}`
  const { options, env, line, reached, release } = await situation(place, cluster, run.stage, async () => ({
    XDG_CACHE_HOME: tools,
  }))
  // The page of the place listens where this machine reaches it, too.
  const job = agent.start({
    ...{ pipeline: cluster, plugins: [plugin(options)], command: COMMAND },
    env: { BUILDKITE_AGENT_ID: agentId, BUILDKITE_PTY: `${hookOf(run) !== 'goes on'}`, ...env },
  })
  try {
    const early = job.ended.then(({ log }) => Promise.reject(new Error(`ended before "${run.stage}": ${log}`)))
    early.catch(() => {})
    // When all is ready, the job is at its command.
    const printed = run.stage === 'just after ready' ? new RegExp(COMMAND_RAN) : (line ?? /^/)
    await Promise.race([reached ?? job.printed(printed), early])
    const since = performance.now()
    job.signal(run.signal, endsAll(run) && hookOf(run) === 'is killed too' ? 'all' : run.target)
    const removal = untilRemoval(place, cluster, since)
    const { code, signal, log } = await (endsAll(run) ? job.exited : job.ended)
    const over = performance.now() - since
    const whole = { cluster, code: code ?? { SIGINT: 130, SIGTERM: 143, SIGKILL: 137 }[signal as Run['signal']] }
    if (!endsAll(run)) return { ...whole, log, next: undefined, over, removing: await removal() }
    const next = await nextOnBuildkite(place, agentId)
    return { ...whole, log, next, over, removing: undefined }
  } finally {
    await release()
    rmSync(tools, { recursive: true, force: true })
  }
}

async function nextOnBuildkite({ ground, buildkite }: Place, agentId = AGENT): Promise<string> {
  const { agent, plugin } = buildkite
  const id = `next-${++jobs}`
  const next = agent.start({
    ...{ pipeline: id, plugins: [plugin({ ...labInputs(ground), ...FAILING, name: id })], command: COMMAND },
    env: { BUILDKITE_AGENT_ID: agentId },
  })
  return (await next.ended).log
}

/** When the engine began to remove something of a cluster's: asked for when the job is over, since it may never. */
function untilRemoval({ watch }: Place, cluster: string, since: number): () => Promise<number | undefined> {
  const names = [`${cluster}-control-plane`, recordName(cluster)]
  let at: number | undefined
  const ours = ({ Type, Action, Actor }: EngineEvent): boolean =>
    (Type === 'container' ? ['kill', 'destroy'] : ['destroy']).includes(Action) &&
    (names.includes(Actor.Attributes['name'] ?? '') || names.includes(Actor.ID))
  watch.first(ours).then(
    () => {
      at = performance.now() - since
    },
    () => {},
  )
  return async () => at
}

/** What is on the engine, in the folders of both hosts, and of processes. */
async function look(place: Place): Promise<readonly string[]> {
  const { sidecar, step, buildkite } = place
  const images = async (of: DockerCli): Promise<string[]> =>
    (await of('image', 'ls', '--all', '--no-trunc', '--format', 'image {{.Repository}}:{{.Tag}} {{.ID}}')).split('\n')
  // Steps write their own files of commands; tools stay for later jobs.
  const inStep = `find /tmp /root /home /__w -not -path '*/_runner_file_commands*' -not -path '/__w/_actions/*' | sed 's/^/file /'
    { grep --files-with-matches --null-data '^KIND_IN_DIND_STARTED_BY=' /proc/[0-9]*/environ
      grep --files-with-matches 'kind-in-din[d]' /proc/[0-9]*/cmdline; } 2>/dev/null |
      cut -d/ -f3 | while read -r pid; do echo "process $(tr '\\0' ' ' <"/proc/$pid/cmdline")"; done`
  const agentFiles = buildkite.agent.files().filter(path => !/^tmp\/buildkite-agent-hook-wrapper\//.test(path))
  const found = [
    ...(await listing(sidecar.docker)),
    ...(await images(sidecar.docker)),
    ...(await prepare(step, inStep)).split('\n'),
    // The agent leaves its own where it is killed.
    ...agentFiles.map(path => `agent's file ${path}`),
    ...buildkite.agent.processes().map(command => `agent's process ${command}`),
  ]
  return found.filter(line => line !== '').sort()
}
