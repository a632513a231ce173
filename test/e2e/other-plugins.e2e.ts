/**
 * The examples for Buildkite's own docker and docker-compose plugins, which run the command elsewhere: in a container on the
 * cluster's network. There is no GitHub here to get those plugins from, nor docker compose: the job runs the docker commands
 * that they come to, made of the examples' own options.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { type BuildkiteApi, startBuildkiteApi } from '../buildkite-api.ts'
import { kindPath, kubectlPath, type ReleasePage, startReleasePage } from '../release-page.ts'
import { type BuildkiteAgent, createBuildkiteAgent, type JobRun, PLUGIN, type Step } from './bootstrap.ts'
import { docker, listing, names, runner } from './lab.ts'

/** Tells what is made on the lab's engine from what another run makes there. */
const BUILD = `build-${process.pid}`
const PIPELINE = 'elsewhere'
/** What the examples' command needs: a shell and kubectl. */
const TOOLS = `kind-in-dind-tools:${BUILD}`

let api: BuildkiteApi
let page: ReleasePage
let agent: BuildkiteAgent

beforeAll(async () => {
  await buildTools()
  api = await startBuildkiteApi()
  page = await startReleasePage({
    files: {
      [kindPath(names.kindVersion)]: { file: names.tools.kind },
      [kubectlPath(names.kubernetesVersion)]: { file: names.tools.kubectl },
    },
  })
  agent = createBuildkiteAgent({
    agent: names.tools.buildkiteAgent,
    engine: names.engine,
    endpoint: api.endpoint,
    programs: { docker: names.tools.docker, node: names.tools.node, grep: 'grep' },
    variables: { BUILDKITE_BUILD_ID: BUILD, TOOLS_IMAGE: TOOLS },
  })
})

afterAll(async () => {
  agent?.remove()
  await page?.close()
  await api?.close()
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

/** The only step of an example, and the options of each of its plugins by their short names. */
async function example(file: string): Promise<{ step: Step; options: Readonly<Record<string, Options>> }> {
  const [step, ...more] = await agent.pipeline(file)
  expect(more).toEqual([])
  const plugins = step?.plugins.flatMap(plugin => Object.entries(plugin)) ?? []
  const options = Object.fromEntries(
    plugins.map(([name, given]) => [name.replace(/^.*\/|(-buildkite-plugin)?#.*$/g, ''), given as Options]),
  )
  expect(Object.keys(options)[0]).toBe('kind-in-dind')
  return { step: step as Step, options }
}
type Options = Readonly<Record<string, unknown>>

/** Runs a job with the plugin as an example has it, and as its command what the other plugin makes of the command. */
async function run(given: Options | undefined, command: string): Promise<JobRun> {
  const { kind, kubectl } = page.templates
  const lab = { 'node-image': names.images.node, 'download-url': [`kind=${kind}`, `kubectl=${kubectl}`] }
  const plugins = [{ [PLUGIN]: { ...lab, ...given } }]
  return agent.start({ pipeline: PIPELINE, plugins, command }).ended
}

/** One word for a shell, as it is. */
const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
/** One word for a shell, with its variables put in. */
const expanded = (word: string): string => `"${word.replace(/["\\`]/g, '\\$&')}"`

/**
 * What the docker plugin's command hook runs: see its README and commands/run.sh. It makes a network that is not there;
 * `environment` goes to --env, `volumes` to --volume, with variables put in where expand-volume-vars says so.
 */
function dockerPlugin(options: Options, command: string): string {
  const { image, network, environment, volumes, 'expand-volume-vars': expand, ...others } = options
  expect(others).toEqual({})
  const volume = expand === true ? expanded : quoted
  return [
    `[ -n "$(docker network ls --quiet --filter ${quoted(`name=${network}`)})" ] || docker network create ${quoted(`${network}`)}`,
    [
      ...['docker run -t -i --rm --init', '--volume "$PWD:/workdir"'],
      ...(volumes as string[]).map(word => `--volume ${volume(word)}`),
      '--workdir /workdir',
      ...(environment as string[]).map(word => `--env ${quoted(word)}`),
      ...[`--network ${quoted(`${network}`)}`, '--label "com.buildkite.job-id=$BUILDKITE_JOB_ID"'],
      ...[quoted(`${image}`), '/bin/sh -e -c', quoted(command)],
    ].join(' '),
  ].join('\n')
}

/** What a compose file says of a service, as far as the example needs it. */
interface Service {
  readonly image: string
  readonly environment: Readonly<Record<string, string>>
  readonly volumes: readonly string[]
  readonly networks: readonly string[]
}

/**
 * What the docker-compose plugin's `run` comes to, `docker compose -f FILE run --rm SERVICE /bin/sh -e -c COMMAND`. Compose
 * puts variables in as a shell does, and refuses an external network that is not there.
 */
function composePlugin(options: Options, command: string): string {
  const { config, run: name, ...others } = options
  expect(others).toEqual({})
  const file = parse(readFileSync(join(import.meta.dirname, '../..', `${config}`), 'utf8')) as {
    readonly services: Readonly<Record<string, Service>>
    readonly networks: Readonly<Record<string, { readonly external: boolean; readonly name: string }>>
  }
  const { image, environment, volumes, networks, ...more } = file.services[`${name}`] as Service
  expect(more).toEqual({})
  const joined = networks.map(network => {
    expect(file.networks[network]).toMatchObject({ external: true })
    return expanded(file.networks[network]?.name ?? '')
  })
  return [
    ...joined.map(network => `docker network inspect ${network} >/dev/null`),
    [
      'docker run --rm',
      ...Object.entries(environment).map(([key, value]) => `--env ${expanded(`${key}=${value}`)}`),
      ...volumes.map(volume => `--volume ${expanded(volume)}`),
      ...joined.map(network => `--network ${network}`),
      ...[expanded(image), '/bin/sh -e -c', quoted(command)],
    ].join(' '),
  ].join('\n')
}

/** What this file's jobs have on the lab's engine, which others may use meanwhile. */
async function ours(): Promise<readonly string[]> {
  return (await listing()).filter(line => line.includes(BUILD) || line.includes(PIPELINE))
}

/** What the examples' command prints of a cluster with one node. */
const NODE = new RegExp(`^ok.*^${PIPELINE}-[0-9a-f]{8}-control-plane +Ready`, 'ms')

describe('the docker plugin (docker.yml)', () => {
  it('runs the command in a container on the network that both plugins are given, which goes with the cluster', async () => {
    expect(await ours()).toEqual([])
    const { step, options } = await example('examples/buildkite/docker.yml')
    const network = `kind-${BUILD}`
    expect(options['kind-in-dind']).toEqual({ network })
    const command = dockerPlugin(options['docker'] ?? {}, step.command)
    const ended = await run(options['kind-in-dind'], `docker network inspect ${network} >/dev/null\n${command}`)
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toMatch(NODE)
    expect(await ours(), ended.log).toEqual([])
  })
})

describe('the docker-compose plugin (docker-compose.yml)', () => {
  const service = `kind-in-dind-service-${BUILD}`
  afterAll(() => docker('rm', '--force', service))

  it("runs the command in a service on the cluster's own network, which goes even before other services do", async () => {
    expect(await ours()).toEqual([])
    const { step, options } = await example('examples/buildkite/docker-compose.yml')
    const command = composePlugin(options['docker-compose'] ?? {}, step.command)
    // That plugin ends the services that a service depends on in its own pre-exit, which comes after ours.
    const other = `docker run --detach --name ${service} --network "$KIND_IN_DIND_NETWORK" ${names.images.web}`
    const ended = await run(options['kind-in-dind'], `${other}\n${command}`)
    expect(ended.code, ended.log).toBe(0)
    expect(ended.log).toMatch(NODE)
    expect(await ours(), ended.log).toEqual([`container ${service}`])
    expect(ended.log).not.toMatch(/^Warning: /m)
  })
})
