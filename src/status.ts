/** The commands `status` and `down --stale`: what is on the engine, whose it is, and the removal of what is over. */
import { join } from 'node:path'
import { buildxAt } from './builder/buildx.ts'
import { removeLeftBuilders } from './builder/remove.ts'
import { type Me, reap, staleness } from './cluster/reap.ts'
import { type Survey, survey } from './cluster/survey.ts'
import { type EngineOptions, parseEngineOptions } from './commands.ts'
import { clientVersion, dockerAt, engineEnv } from './engine/docker.ts'
import { findEngine } from './engine/engine.ts'
import { messageOf, Problem } from './lib/problem.ts'
import { readTextFile } from './lib/text-file.ts'
import type { Engine } from './plan.ts'
import { type Status, statusLines } from './report/status.ts'
import { loadStates } from './state.ts'
import type { World } from './world.ts'

/** How long a program may take to say its version, in milliseconds. */
const VERSION_LIMIT = 10_000
/** How long a removal by hand may take, in milliseconds. */
const REMOVAL_LIMIT = 120_000

/** Lists what is on the engine and whose it is. */
export async function status(world: World): Promise<void> {
  const { host, run, now } = world
  const options = parseEngineOptions('status', host.given())
  const { engine, me } = await here(world, options)
  const docker = dockerAt(engine, run)
  const [found, kind, client] = await Promise.all([
    survey(docker),
    versionOf(world, ['kind', 'version'], engine),
    versionOf(world, ['docker', ...clientVersion], engine),
  ])
  const said = toStatus(found, me, now() + engine.clockAhead, {
    ...{ engine, kind, client, host: host.within },
    own: ownVersion(world),
    node: process.version.replace(/^v/, ''),
  })
  if (options.json) host.print(JSON.stringify(said, undefined, 2))
  else for (const line of statusLines(said)) host.print(line)
}

/** Removes what other jobs left on the engine: see `staleness`. */
export async function downStale(world: World): Promise<void> {
  const { host, run, now } = world
  const { engine, me } = await here(world, parseEngineOptions('down', withoutStale(host.given())))
  await host.group('Remove what other jobs left on the engine', async () => {
    const clock = (): number => now() + engine.clockAhead
    const docker = dockerAt(engine, run)
    const { removed, failed, uses } = await reap(docker, me, clock, REMOVAL_LIMIT, engine.cgroupVersion)
    const buildx = buildxAt(undefined, engine, run)
    const builders = await removeLeftBuilders(buildx, host.env, uses, now())
    for (const what of removed) host.info(`Removed ${what}`)
    if (removed.length + failed.length === 0)
      host.info('There is nothing to remove; status shows what there is, and until when')
    const left = [...failed, ...builders]
    if (left.length > 0) throw new Problem(left.join('\n'))
  })
}

/** The engine, and whose job this is: in a job those of its cluster, where it has one. */
async function here(world: World, options: EngineOptions): Promise<{ readonly engine: Engine; readonly me: Me }> {
  const { host, signal } = world
  const plan = loadStates(host.folder)[0]?.plan
  const env = options.dockerHost === undefined && plan ? { ...host.env, ...engineEnv(plan.engine) } : host.env
  const { info, debug } = host
  return { engine: await findEngine(options, { signal, info, debug, env }), me: plan ?? host.identity }
}

/** What is known of the engine as one object, for people and for programs; docs/lifecycle.md describes it. */
export function toStatus(
  { holdings, foreign }: Survey,
  me: Me,
  now: number,
  about: {
    readonly engine: Engine
    readonly host: string
    readonly own: string | null
    readonly kind: string | null
    readonly client: string | null
    readonly node: string
  },
): Status {
  const { engine, host, own, kind, client, node } = about
  const { version, address, source, architecture, cpus, memory, cgroupVersion, storageDriver, clockAhead } = engine
  const time = (seconds: number | undefined): string | null =>
    seconds === undefined ? null : new Date(seconds * 1000).toISOString()
  const nodes = (of: Survey['foreign'][number]['nodes']) => of.map(({ name, running }) => ({ name, running }))
  return {
    schema: 1,
    versions: { 'kind-in-dind': own, kind, 'docker-client': client, 'docker-engine': version, node },
    host,
    engine: {
      // A password in an address is nobody's business.
      address: address.replace(/:\/\/[^/@]*@/, '://***@'),
      ...{ source, architecture, cpus, memory, 'cgroup-version': cgroupVersion, 'storage-driver': storageDriver },
      'clock-ahead': Math.round(clockAhead / 1000),
    },
    clusters: holdings.map(holding => ({
      name: holding.cluster,
      owner: holding.owner,
      job: holding.job,
      'this-job': holding.job === me.job,
      created: time(holding.created),
      age: holding.created === undefined ? null : Math.round(now / 1000 - holding.created),
      expiry: time(holding.expiry),
      kept: holding.kept,
      stale: staleness(holding, me, now) ?? null,
      nodes: nodes(holding.nodes),
      others: [...holding.containers, ...holding.networks, ...holding.volumes].map(({ name }) => name),
      'half-gone': !holding.hasRecord || holding.nodes.length + holding.containers.length < holding.planned.length,
    })),
    foreign: foreign.map(({ cluster, nodes: its }) => ({ name: cluster, nodes: nodes(its) })),
  }
}

/** The version that a program prints; null where there is no such program, or it says none. */
async function versionOf(
  { host, run }: World,
  argv: readonly [string, ...string[]],
  engine: Engine,
): Promise<string | null> {
  try {
    const { stdout } = await run.try(argv, { timeout: VERSION_LIMIT, env: engineEnv(engine) })
    return /v?\d+\.\d+\.\d+[\w.+-]*/.exec(stdout)?.[0] ?? null
  } catch (error) {
    host.debug(messageOf(error))
    return null
  }
}

/** Of this program, from the package.json beside dist/. */
function ownVersion({ self }: World): string | null {
  const text = readTextFile(join(self.cli, '../../package.json'))
  return text === undefined ? null : ((JSON.parse(text) as { readonly version?: string }).version ?? null)
}

/** The flag has chosen the story. */
function withoutStale<T>(given: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(given).filter(([name]) => name !== 'stale'))
}
