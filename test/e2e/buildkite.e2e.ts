/** The plugin as the real `buildkite-agent bootstrap` runs it, on the lab's engine; Buildkite's API is played. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { builderImages } from '../../src/builder/buildx.ts'
import { REGISTRY_IMAGE } from '../../src/images/registry.ts'
import type { Annotation, BuildkiteApi } from '../buildkite-api.ts'
import {
  type BuildkiteAgent,
  type Job,
  type JobRun,
  PLUGIN,
  processesOf,
  type RunningJob,
  type Step,
} from './bootstrap.ts'
import { type Buildkite, startBuildkite } from './buildkite.ts'
import { type EngineEvent, type Watch, watchEngine } from './events.ts'
import { docker, listing, names } from './lab.ts'

/** What the example builds on the engine. */
const IMAGE = 'web:ci'
const PAGE = 'Served by a pod.'
/** In milliseconds. */
const SECOND = 1000

let buildkite: Buildkite
let api: BuildkiteApi
let agent: BuildkiteAgent
let plugin: Buildkite['plugin']
let endToEnd: Step
let matrix: Step

beforeAll(async () => {
  buildkite = await startBuildkite({
    dockerPlugins: { buildx: names.tools.buildx },
    variables: { BASE_IMAGE: names.images.web },
  })
  ;({ api, agent, plugin } = buildkite)
  const steps = await agent.pipeline('examples/buildkite/pipeline.yml')
  ;[endToEnd, matrix] = steps as [Step, Step]
})

afterAll(async () => {
  await buildkite?.remove()
  await docker('image', 'rm', '--force', IMAGE)
})

/** The configuration that a step of the example gives the plugin. */
function configuration(step: Step): Readonly<Record<string, unknown>> {
  expect(step.plugins).toHaveLength(1)
  const [[name, options]] = Object.entries(step.plugins[0] ?? {}) as [[string, Readonly<Record<string, unknown>>]]
  expect(name).toMatch(/^https:\/\/github\.com\/OWNER\/kind-in-dind#v\d+\.\d+\.\d+$/)
  return options
}

/** A job that has ended, and how the place looks where it ran. */
interface Ended extends JobRun {
  readonly id: string
  readonly processes: readonly string[]
  readonly before: Place
  readonly after: Place
  readonly events: readonly EngineEvent[]
}

interface Place {
  readonly engine: readonly string[]
  readonly files: readonly string[]
}

async function place(): Promise<Place> {
  return { engine: await listing(), files: agent.files() }
}

/** Runs a job to its end, and something beside it from its start. */
async function run(job: Job, beside?: (running: RunningJob, watch: Watch) => Promise<void>): Promise<Ended> {
  const before = await place()
  const watch = watchEngine()
  try {
    const running = agent.start(job)
    await beside?.(running, watch)
    const ended = await running.ended
    const processes = processesOf(running)
    return { ...ended, id: running.id, processes, before, after: await place(), events: watch.events }
  } finally {
    await watch.end()
  }
}

/** What a job shows on the page of its build, as people read it; the context may go on with the cluster's name. */
function annotationOf({ id }: Ended): Annotation | undefined {
  const found = [...api.annotations.values()].find(({ context }) => `${context}-`.startsWith(`kind-in-dind-${id}-`))
  const read = (_: string, code: string): string => String.fromCodePoint(Number(code))
  return found && { ...found, body: found.body.replaceAll('<br>', '\n').replace(/&#(\d+);/g, read) }
}

/** A command that cannot be missed in the log; the log shows the command itself, too. */
const COMMAND = 'echo "the command $((20 + 1)) runs"'
const COMMAND_RAN = 'the command 21 runs'

/** True for events of this kind in a cluster of the pipeline: its nodes are named after it. */
function ofNode(pipeline: string, action: string): (event: EngineEvent) => boolean {
  return ({ Type, Action, Actor }) =>
    Type === 'container' && Action.startsWith(action) && Actor.Attributes['name']?.startsWith(`${pipeline}-`) === true
}

/** What every job promises, however it ended. */
function itLeavesNothing(ended: () => Ended): void {
  it('leaves the engine with the containers, networks and volumes that it had', () => {
    expect(ended().after.engine, ended().log).toEqual(ended().before.engine)
  })

  it('leaves no process, and no file but what is kept for later jobs', () => {
    expect(ended().processes).toEqual([])
    expect(ended().after.files).toEqual(ended().before.files)
  })
}

describe('a job that passes (the first step of the example)', () => {
  let ended: Ended
  beforeAll(async () => {
    ended = await run({
      pipeline: 'passes',
      hook: true,
      plugins: [plugin(configuration(endToEnd))],
      command: `${endToEnd.command}
buildkite-agent meta-data set nodes "$(kubectl get nodes --output name)"
buildkite-agent meta-data set name "$KIND_IN_DIND_NAME"
echo "read back: $(buildkite-agent meta-data get name)"
[ "$KUBECONFIG" = "$KIND_IN_DIND_KUBECONFIG" ]`,
      env: {
        // As the agent checks a configuration against plugin.yml before it checks out anything.
        BUILDKITE_PLUGIN_VALIDATION: 'true',
        // For docker build in the hook: buildx would note the build among the user's files.
        DOCKER_BUILDKIT: '0',
      },
    })
  })

  it('has the cluster in its command: kubectl, the preloaded image, the NodePort', () => {
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toContain('Valid plugin configuration')
    expect(ended.log).toContain(PAGE)
  })

  it("can note the plugin's outputs as meta-data", () => {
    const name = api.metadata.get('name')
    expect(name).toMatch(/^passes-[0-9a-f]{8}$/)
    expect(ended.log).toContain(`read back: ${name}\n`)
    expect(api.metadata.get('nodes')).toBe(`node/${name}-control-plane\nnode/${name}-worker`)
  })

  it('is left alone by the plugin on the build page', () => {
    expect([...api.annotations]).toEqual([])
  })

  itLeavesNothing(() => ended)
})

describe('a job with a builder on its cluster (builder.yml)', () => {
  const images = {
    [REGISTRY_IMAGE]: names.images.registry,
    [builderImages({ driver: {} }).join()]: names.images.buildkit,
  }
  let ended: Ended
  beforeAll(async () => {
    const [step] = (await agent.pipeline('examples/buildkite/builder.yml')) as [Step]
    const mirrors = names.mirror && `docker.io=${names.mirror}`
    for (const [name, image] of Object.entries(images)) await docker('tag', image, name)
    ended = await run({
      pipeline: 'builds',
      plugins: [plugin({ ...configuration(step), 'registry-mirrors': mirrors })],
      command: step.command,
    })
    for (const name of Object.keys(images)) await docker('image', 'rm', name)
  })

  it("builds an image that pods run from the job's registry", () => {
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toContain('deployment "web" successfully rolled out')
  })

  itLeavesNothing(() => ended)
})

describe('a job whose command fails (the second step of the example), with options of every type', () => {
  let ended: Ended
  beforeAll(async () => {
    const { 'kubernetes-version': version, ...options } = configuration(matrix)
    // The cells of the matrix differ in the node image alone; the lab has one.
    expect(version).toBe('{{matrix}}')
    ended = await run({
      pipeline: 'fails',
      plugins: [
        plugin({
          ...options,
          name: 'Any Name',
          config: {
            kind: 'Cluster',
            apiVersion: 'kind.x-k8s.io/v1alpha4',
            networking: { podSubnet: '10.111.0.0/16' },
            nodes: [{ role: 'control-plane', labels: { tier: 'one' } }],
          },
          ports: [30080, '30081'],
          keep: false,
          'docker-wait': 0,
          'docker-host': names.engine,
        }),
      ],
      command: `${matrix.command}
buildkite-agent meta-data set networks "$(docker network ls --format '{{.Name}}')"
buildkite-agent meta-data set pods "$(kubectl get nodes --selector tier=one --output jsonpath={.items[*].spec.podCIDR})"
buildkite-agent meta-data set ports "$KIND_IN_DIND_PORTS $KIND_IN_DIND_PORT_30080 $KIND_IN_DIND_PORT_30081"
buildkite-agent meta-data set name "$KIND_IN_DIND_NAME"
exit 42`,
      // The engine is the option's; without one in the environment the plugin hands it to the command.
      env: { DOCKER_HOST: '' },
    })
  })

  it("keeps the command's exit code", () => {
    expect(ended.code, ended.log).toBe(42)
  })

  it('gets its options as the types that they have in the YAML', () => {
    const name = api.metadata.get('name')
    expect(name).toMatch(/^any-name-[0-9a-f]{6}$/)
    expect(api.metadata.get('networks')?.split('\n')).toContain(`kind-in-dind-${name}`)
    expect(api.metadata.get('pods')).toMatch(/^10\.111\.\d+\.0\/24$/)
    expect(api.metadata.get('ports')).toMatch(/^\{"30080":"(\S+:\d+)","30081":"(\S+:\d+)"\} \1 \2$/)
  })

  it("has the cluster's logs among its artifacts", () => {
    const [name, id] = [api.metadata.get('name'), ended.id]
    expect([...api.artifacts.keys()]).toEqual(
      expect.arrayContaining([`${id}/${name}/events.txt`, `${id}/${name}/${name}-control-plane/kubelet.log`]),
    )
    expect(ended.log).toContain(`They are among the artifacts of this job: ${name}/`)
  })

  it('is no failure of the plugin', () => {
    expect([...api.annotations]).toEqual([])
  })

  itLeavesNothing(() => ended)
})

describe('a job whose cluster cannot be made', () => {
  const cases: Readonly<Record<string, { options: Record<string, unknown>; sentence: RegExp; begun: boolean }>> = {
    'an image that the engine lacks': {
      options: { images: ['absent:ci'], pull: 'never' },
      sentence: /images: the engine has no absent:ci, and pull is never; build or pull it/,
      begun: false,
    },
    'a node image that nobody has': {
      // Nothing listens there.
      options: { 'node-image': 'localhost:1/node:absent' },
      sentence: /node-image: the engine cannot pull localhost:1\/node:absent: /,
      begun: true,
    },
    'a config with which kubeadm fails in the nodes': {
      options: {
        config: {
          kind: 'Cluster',
          apiVersion: 'kind.x-k8s.io/v1alpha4',
          kubeadmConfigPatches: ['kind: ClusterConfiguration\nkubernetesVersion: none'],
        },
      },
      sentence: /kind could not create the cluster: /,
      begun: true,
    },
  }

  describe.each(Object.entries(cases))('for %s', (_, { options, sentence, begun }) => {
    const pipeline = 'cannot-be-made'
    let ended: Ended
    beforeAll(async () => {
      ended = await run({ pipeline, plugins: [plugin(options)], command: COMMAND })
    })

    it('fails before its command, with a sentence in the log and on the build page', () => {
      expect(ended.code, ended.log).toBe(1)
      expect(ended.log).not.toContain(COMMAND_RAN)
      expect(ended.log).toMatch(sentence)
      const annotation = annotationOf(ended)
      expect(annotation?.style).toBe('error')
      expect(annotation?.body).toMatch(sentence)
      expect(api.requests.at(-1)).toMatchObject({ method: 'POST', path: `/v3/jobs/${ended.id}/annotations` })
    })

    it(begun ? 'had begun to make it' : 'has made nothing', () => {
      // The record of a cluster is the first thing of it.
      const record = ended.events.some(
        ({ Type, Action, Actor }) =>
          Type === 'volume' && Action === 'create' && Actor.ID.startsWith(`kind-in-dind-${pipeline}-`),
      )
      expect(record).toBe(begun)
    })

    itLeavesNothing(() => ended)
  })
})

describe('a job that is cancelled', () => {
  const pipeline = 'cancelled'
  /** A container of the cluster's is killed or removed. */
  const removal = (event: EngineEvent): boolean => ofNode(pipeline, 'kill')(event) || ofNode(pipeline, 'destroy')(event)

  const moments: Readonly<Record<string, (event: EngineEvent) => boolean>> = {
    // The first thing that the engine makes of a node is its volume, a second or so before it has the node itself.
    'the engine creates its nodes': ({ Type, Action, Actor }) =>
      Type === 'volume' && Action === 'create' && !Actor.ID.startsWith('kind-in-dind-'),
    'kubeadm is at work in its node': ofNode(pipeline, 'exec_start: kubeadm init'),
  }

  describe.each(Object.entries(moments))('while %s', (_, moment) => {
    let ended: Ended
    let untilRemoval: number
    let untilEnd: number
    beforeAll(async () => {
      ended = await run({ pipeline, plugins: [plugin({ workers: 1 })], command: COMMAND }, async (running, watch) => {
        await Promise.race([watch.first(moment), running.ended])
        const cancelled = performance.now()
        running.cancel()
        await Promise.race([watch.first(removal), running.ended])
        untilRemoval = performance.now() - cancelled
        await running.ended
        untilEnd = performance.now() - cancelled
      })
    })

    it('ends as a cancelled one, without its command', () => {
      // The agent exits with the hook's code and sends itself the signal as well: either may come first.
      expect(['SIGTERM', 143], ended.log).toContain(ended.signal ?? ended.code)
      expect(ended.log).toContain('Cancelled (SIGTERM).')
      expect(ended.log).not.toContain(COMMAND_RAN)
      expect(annotationOf(ended)).toBeUndefined()
    })

    it('has its nodes under removal within 2 seconds, and is gone within 8', () => {
      expect(ended.events.some(ofNode(pipeline, 'create')), ended.log).toBe(true)
      expect(ended.events.some(removal), ended.log).toBe(true)
      expect(untilRemoval).toBeLessThan(2 * SECOND)
      expect(untilEnd).toBeLessThan(8 * SECOND)
    })

    itLeavesNothing(() => ended)
  })
})

describe('a job with input that is wrong', () => {
  // No engine is there to make anything on: what is wrong is told before anyone asks for it.
  const nowhere = { DOCKER_HOST: 'ssh://nowhere' }

  describe('in several options', () => {
    let ended: Ended
    beforeAll(async () => {
      const plugins = [
        {
          [PLUGIN]: {
            worker: 1,
            wait: 90,
            ports: ['70000'],
            keep: 'perhaps',
            config: ['x'],
            'kubernetes-version': 1.3,
          },
        },
      ]
      ended = await run({ pipeline: 'wrong', plugins, command: COMMAND, env: nowhere })
    })

    it('is told all of it at once, in the log and on the build page', () => {
      expect(ended.code, ended.log).toBe(1)
      expect(ended.log).not.toContain(COMMAND_RAN)
      for (const text of [ended.log, annotationOf(ended)?.body]) {
        expect(text).toContain('worker: no such option; workers is meant?')
        expect(text).toContain('wait: 90 is not a duration')
        expect(text).toContain('ports: "70000" has a port that is not between 1 and 65535')
        expect(text).toContain('keep: "perhaps" is neither true nor false')
        expect(text).toContain('config: ')
        expect(text).toContain('kubernetes-version: 1.3 may be 1.30 read as a number; quote it')
      }
    })

    itLeavesNothing(() => ended)
  })

  describe('in a null, for which the agent drops the whole configuration', () => {
    let ended: Ended
    beforeAll(async () => {
      const plugins = [{ [PLUGIN]: { workers: null, nonsense: true } }]
      ended = await run({ pipeline: 'null', plugins, command: COMMAND, env: nowhere })
    })

    it('goes on with the defaults and says so', () => {
      expect(ended.log).toMatch(/Warning: .*the defaults are used.*null/)
      expect(ended.log).toContain('DOCKER_HOST: ssh://nowhere is no engine that can be used here')
      expect(ended.log).not.toContain('nonsense: no such option')
      expect(ended.code).toBe(1)
    })

    itLeavesNothing(() => ended)
  })
})

describe('jobs on an agent without Node, two at the same time', () => {
  const options = { worker: 1 }
  const pipeline = 'without-node'
  let nodeless: Buildkite
  let ended: readonly JobRun[]
  beforeAll(async () => {
    nodeless = await startBuildkite({ variables: { DOCKER_HOST: 'ssh://nowhere' }, withoutNode: true })
    const job = { pipeline, plugins: [nodeless.plugin(options)], command: COMMAND }
    ended = await Promise.all([nodeless.agent.start(job).ended, nodeless.agent.start(job).ended])
  })
  afterAll(() => nodeless?.remove())

  it('run the program in both hooks, with a Node that one of them fetched and verified', () => {
    for (const { code, log } of ended) {
      expect(code, log).toBe(1)
      expect(log).toContain('worker: no such option; workers is meant?')
      expect(log).toContain('There is no cluster to remove.')
    }
    const told = ended.filter(({ log }) => /Node v[\d.]+ from http:\/\/127\.0\.0\.1:.*, checksum verified/.test(log))
    expect(told).toHaveLength(1)
    expect(nodeless.nodeFetches()).toBe(1)
  })

  it('leave it for the jobs after them', async () => {
    const { log } = await nodeless.agent.start({ pipeline, plugins: [nodeless.plugin(options)], command: COMMAND })
      .ended
    expect(log).toContain('worker: no such option; workers is meant?')
    expect(nodeless.nodeFetches()).toBe(1)
  })
})
