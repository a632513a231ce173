/**
 * The examples for Buildkite's own docker and docker-compose plugins, which run the command elsewhere: in a container on the
 * cluster's network. There is no GitHub here to get those plugins from: plugins of the same names stand in for them, whose
 * hooks run what theirs run for the examples' options.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { JobRun, Step } from './bootstrap.ts'
import { type Buildkite, startBuildkite } from './buildkite.ts'
import { docker, listing, names, runner } from './lab.ts'

/** Tells what is made on the lab's engine from what another run makes there. */
const BUILD = `build-${process.pid}`
const PIPELINE = 'elsewhere'
/** What the examples' command needs: a shell and kubectl. */
const TOOLS = `kind-in-dind-tools:${BUILD}`

let buildkite: Buildkite

beforeAll(async () => {
  await buildTools()
  buildkite = await startBuildkite({
    programs: { grep: 'grep' },
    dockerPlugins: { compose: names.tools.compose },
    variables: { BUILDKITE_BUILD_ID: BUILD, BUILDKITE_BUILD_NUMBER: '7', TOOLS_IMAGE: TOOLS },
  })
})

afterAll(async () => {
  await buildkite?.remove()
  await docker('image', 'rm', '--force', TOOLS)
})

async function buildTools(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'tools-'))
  try {
    writeFileSync(join(folder, 'Dockerfile'), `FROM ${names.images.step}\nCOPY kubectl /usr/local/bin/\n`)
    await runner.run(['cp', names.tools.kubectl, join(folder, 'kubectl')])
    await docker('build', '--quiet', '--tag', TOOLS, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

type Options = Readonly<Record<string, unknown>>
/** What a plugin has in its folder hooks, each as bash. */
type Hooks = Readonly<Record<string, string>>

/** A plugin's short name, and its options. */
interface Plugin {
  readonly name: string
  readonly options: Options
}

/** The only step of an example, which has our plugin and another one after it. */
async function example(file: string): Promise<{ step: Step; ours: Options; other: Plugin }> {
  const [step, ...more] = await buildkite.agent.pipeline(file)
  expect(more).toEqual([])
  const plugins = step?.plugins.flatMap(plugin => Object.entries(plugin)) ?? []
  const [first, other, ...others] = plugins.map(([name, options]) => ({
    name: name.replace(/^.*\/|(-buildkite-plugin)?#.*$/g, ''),
    options,
  }))
  expect(first?.name).toBe('kind-in-dind')
  expect(others).toEqual([])
  return { step: step as Step, ours: first?.options ?? {}, other: other as Plugin }
}

/** Runs a job as an example has it, with hooks for the other plugin; the log is without what colours it on a terminal. */
async function run({ step, ours, other }: Awaited<ReturnType<typeof example>>, hooks: Hooks): Promise<JobRun> {
  const { agent, plugin } = buildkite
  const plugins = [plugin(ours), { [agent.addPlugin(other.name, hooks)]: other.options }]
  const ended = await agent.start({ pipeline: PIPELINE, plugins, command: step.command }).ended
  return { ...ended, log: stripVTControlCharacters(ended.log) }
}

/** One word for a shell, as it is. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
/** One word for a shell, with its variables put in. */
const expanded = (word: string): string => `"${word.replace(/["\\`]/g, '\\$&')}"`

/**
 * What the docker plugin's hooks run: see its README and commands/run.sh. It makes a network that is not there;
 * `environment` goes to --env, `volumes` to --volume, with variables put in where expand-volume-vars says so.
 */
function dockerHooks(options: Options): Hooks {
  const { image, network, environment, volumes, 'expand-volume-vars': expand, ...others } = options
  expect(others).toEqual({})
  const volume = expand === true ? expanded : quoted
  return {
    command: [
      // The cluster has made it.
      `docker network inspect ${quoted(`${network}`)} >/dev/null`,
      `[ -n "$(docker network ls --quiet --filter ${quoted(`name=${network}`)})" ] || docker network create ${quoted(`${network}`)}`,
      [
        ...['docker run -t -i --rm --init', '--volume "$PWD:/workdir"'],
        ...(volumes as string[]).map(word => `--volume ${volume(word)}`),
        '--workdir /workdir',
        ...(environment as string[]).map(word => `--env ${quoted(word)}`),
        ...[`--network ${quoted(`${network}`)}`, '--label "com.buildkite.job-id=$BUILDKITE_JOB_ID"'],
        ...[quoted(`${image}`), '/bin/sh -e -c "$BUILDKITE_COMMAND"'],
      ].join(' '),
    ].join('\n'),
    'pre-exit': `for container in $(docker ps -aq --filter "label=com.buildkite.job-id=$BUILDKITE_JOB_ID"); do docker stop "$container"; done`,
  }
}

/**
 * What the docker-compose plugin's hooks run, see its commands/run.sh and lib/run.bash: what the service depends on is
 * started, then the command in the service; all goes in pre-exit, which comes after ours.
 *
 * @param more a further file with what a test adds
 */
function composeHooks(options: Options, more: string): Hooks {
  const { config, run: service, ...others } = options
  expect(others).toEqual({})
  const project = `buildkite\${BUILDKITE_JOB_ID//-}`
  const compose = `docker compose -f ${quoted(`${config}`)} -f ${quoted(more)} -p "${project}"`
  return {
    command: [
      `${compose} up -d --scale ${service}=0 ${service}`,
      [
        `${compose} run --name "${project}_${service}_build_$BUILDKITE_BUILD_NUMBER"`,
        '--label "com.buildkite.job_id=$BUILDKITE_JOB_ID"',
        `--rm ${service} /bin/sh -e -c "$BUILDKITE_COMMAND"`,
      ].join(' '),
    ].join('\n'),
    'pre-exit': [
      `docker ps --filter "label=com.docker.compose.project=${project}" --format 'left on <{{.Networks}}>'`,
      `${compose} rm --force -v || true`,
      `${compose} down --volumes || true`,
    ].join('\n'),
  }
}

/** What this file's jobs have on the lab's engine, which others may use meanwhile. */
async function ours(): Promise<readonly string[]> {
  const own = [BUILD, PIPELINE, `buildkitejob${process.pid}`]
  return (await listing()).filter(line => own.some(name => line.includes(name)))
}

/** What the examples' command prints of a cluster with one node. */
const NODE = new RegExp(`^ok.*^${PIPELINE}-[0-9a-f]{8}-control-plane +Ready`, 'ms')

describe('the docker plugin (docker.yml)', () => {
  it('runs the command in a container on the network that both plugins are given, which goes with the cluster', async () => {
    expect(await ours()).toEqual([])
    const job = await example('examples/buildkite/docker.yml')
    expect([job.ours, job.other.name]).toEqual([{ network: `kind-${BUILD}` }, 'docker'])
    const ended = await run(job, dockerHooks(job.other.options))
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toMatch(NODE)
    expect(await ours(), ended.log).toEqual([])
  })
})

describe('the docker-compose plugin (docker-compose.yml)', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'compose-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it("runs the command in a service on the cluster's own network, which goes even before other services do", async () => {
    expect(await ours()).toEqual([])
    const job = await example('examples/buildkite/docker-compose.yml')
    expect(job.other.name).toBe('docker-compose')
    const more = join(folder, 'more.yml')
    const database = { image: names.images.web, networks: ['cluster'] }
    writeFileSync(more, JSON.stringify({ services: { tests: { depends_on: ['database'] }, database } }))
    const ended = await run(job, composeHooks(job.other.options, more))
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toMatch(NODE)
    // The other service ran to the end, on the cluster's network no more.
    expect(ended.log).toMatch(/^left on <>$/m)
    expect(await ours(), ended.log).toEqual([])
    expect(ended.log).not.toMatch(/^Warning: /m)
  })
})
