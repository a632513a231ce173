/** Reads what was asked for, finds where it will happen, and decides on everything that will be made. */
import { randomBytes } from 'node:crypto'
import { resolve } from 'node:path'
import { builderImages, buildxAt, hasPlugin } from '../builder/buildx.ts'
import { buildxFolder, linkedBuildx, missingPaths, pluginLink } from '../builder/config-folder.ts'
import { judgeBuilder } from '../builder/prepare.ts'
import { judgeCapacity, reservationPatch } from '../cluster/capacity.ts'
import { allowsCgroupV1, chosenImage, kindConfig, needsCertsFolder, ownRegistries } from '../cluster/config.ts'
import { checkName } from '../cluster/create.ts'
import { installKind } from '../cluster/install.ts'
import { installBuildx } from '../cluster/install-buildx.ts'
import { judgeConfig } from '../cluster/judge-config.ts'
import { checkKubeconfigOwner, checkKubeconfigPath } from '../cluster/kubeconfig.ts'
import type { Program } from '../cluster/program.ts'
import { hasDnsSearch, judgeVersions, nodeImage, refuseVersion } from '../cluster/versions.ts'
import { type Docker, dockerAt } from '../engine/docker.ts'
import { findEngine, resolved } from '../engine/engine.ts'
import { isLoopback } from '../engine/find.ts'
import { findOwnContainer } from '../engine/own-container.ts'
import { heeding, judgeEngine } from '../engine/preflight.ts'
import { candidates, listenAddress } from '../engine/reach.ts'
import { namesIn, readArchives, splitImages } from '../images/archive.ts'
import { nodeMirrors } from '../images/mirrors.ts'
import { readNodeArchive } from '../images/node-archive.ts'
import { ensureImage, type ResolveWorld, resolveImages, resolvingAt, warnOfLatest } from '../images/resolve.ts'
import type { KindConfig } from '../kind-config.ts'
import { Problem } from '../lib/problem.ts'
import { readTextFile } from '../lib/text-file.ts'
import { type Options, parse } from '../options.ts'
import { type BuilderPlan, type Engine, makePlan, nodeRoles } from '../plan.ts'
import { basicAuth } from '../registry-mirrors.ts'
import { notePlan } from '../report/facts.ts'
import type { World } from '../world.ts'
import { mayClash, tidy } from './tidy.ts'
import { logOf, toolsOf, type Use } from './use.ts'

/** What was asked for. @throws Problem with every option that is wrong */
export function readOptions({ host, report }: World): Options {
  const options = parse(host.given(), { readFile: readTextFile, refuseVersion })
  report.summary = options.summary
  maskCredentials(host, options)
  // Later commands of the job may run in other folders.
  const kubeconfig = options.kubeconfig && resolve(options.kubeconfig)
  if (kubeconfig !== undefined) checkKubeconfigPath(kubeconfig)
  return { ...options, kubeconfig, logsDir: options.logsDir && resolve(options.logsDir) }
}

/** What a mirror's URL has of a password is for the download alone, and for the mirror. */
function maskCredentials(host: World['host'], options: Options): void {
  for (const url of Object.values(options.downloadUrls)) {
    const password = /:\/\/[^/@:]*:([^/@]+)@/.exec(url)?.[1]
    if (password !== undefined) host.mask(password)
  }
  for (const { credentials } of options.registryMirrors) {
    if (credentials === undefined) continue
    for (const secret of [credentials.password, encodeURIComponent(credentials.password), basicAuth(credentials)])
      host.mask(secret)
  }
}

/** What a use begins with. */
export interface Found {
  readonly engine: Engine
  readonly docker: Docker
  readonly kind: Program
  readonly builder: Omit<BuilderPlan, 'name'> | undefined
  /** Settles when it is known what the engine has of the images to load, and lacks. */
  readonly resolving: ReturnType<typeof resolveAll>
  /** See `Use`. */
  readonly tidied: Promise<void>
}

/**
 * The engine is waited for while kind is downloaded, and buildx says what it thinks of the builder's options. As soon as the
 * engine answers, it begins to pull what it lacks; what other jobs left on it is removed meanwhile, and beside what follows.
 */
export function findMeans(world: World, options: Options): Promise<Found> {
  const { host, timeline } = world
  return host.group('Find the Docker engine, get kind', async () => {
    const [place, kind, builder] = await Promise.all([
      findPlace(world, options),
      timeline.span('Get kind', () =>
        installKind({ ...toolsOf(world), version: options.kindVersion, url: options.downloadUrls.kind }),
      ),
      options.builder === undefined ? undefined : prepareBuilder(world, options.builder, options.downloadUrls.buildx),
    ])
    if (kind.folder !== undefined) host.info(`kind ${kind.version} at ${kind.path}`)
    return { ...place, kind, builder }
  })
}

async function findPlace(world: World, options: Options): Promise<Omit<Found, 'kind' | 'builder'>> {
  const { host, timeline } = world
  const engine = await timeline.span('Find the engine', () => findEngine(options, { ...logOf(world), env: host.env }))
  host.info(`Docker ${engine.version} at ${engine.address}, found by ${engine.source}`)
  const docker = dockerAt(engine, world.run)
  const { references } = splitImages(options.images)
  const resolving = resolveAll(
    docker,
    { ...options, images: references },
    resolvingAt({ engine, mirrors: options.registryMirrors }, world),
  )
  // Awaited with the other judgements; a failure before that must not count as unhandled.
  resolving.catch(() => {})
  return { engine, docker, resolving, tidied: tidy(world, engine) }
}

/** Resolves the images that were asked for, and the builder's, which are loaded like any other. */
async function resolveAll(
  docker: Docker,
  options: Options,
  world: ResolveWorld,
): Promise<{ readonly images: Promise<ReadonlyMap<string, string>> }> {
  if (options.builder === undefined) return resolveImages(docker, options, world)
  const pulled = Promise.all(
    builderImages(options.builder).map(
      async reference => [reference, await ensureImage(docker, reference, 'builder', world)] as const,
    ),
  )
  // Awaited with the others; a failure before that must not count as unhandled.
  pulled.catch(() => {})
  const others = await resolveImages(docker, options, world)
  const images = Promise.all([others.images, pulled]).then(([references, own]) => new Map([...references, ...own]))
  images.catch(() => {})
  return { images }
}

async function prepareBuilder(
  world: World,
  options: NonNullable<Options['builder']>,
  url: string | undefined,
): Promise<Omit<BuilderPlan, 'name'>> {
  const { host, run } = world
  const configFolder = buildxFolder(host.env)
  // Before the first command of buildx, which makes the folder.
  const missing = missingPaths(host.env)
  // None of these commands talks to an engine, which may not answer yet.
  const fetched = (await hasPlugin(dockerAt({ env: {}, aroundProxy: {} }, run)))
    ? linkedBuildx(host.env)
    : { program: (await installBuildx({ ...toolsOf(world), url })).path, link: pluginLink(host.env) }
  await judgeBuilder(buildxAt(fetched?.program, undefined, run), options, host.folder)
  return { fetched, configFolder, missing }
}

/** Decides on everything that will be made. What cannot work is said here, before anything is made. */
export async function decide(world: World, options: Options, found: Found): Promise<Use> {
  const { host, now, report } = world
  const { engine, docker, kind, builder } = found
  const preflight = heeding(host)
  const choice = chosenImage(options)
  const [nodeArchive, archives] = await Promise.all([
    choice.kind === 'archive' ? readNodeArchive(choice.path, engine.architecture) : undefined,
    readArchives(splitImages(options.images).archives, 'images', engine.architecture),
  ])
  warnOfLatest(namesIn(archives), host)
  const image = nodeImage(
    choice.kind === 'archive' ? { kind: 'image', reference: nodeArchive?.image.reference ?? '' } : choice,
    kind.version,
  )
  preflight.heed(judgeVersions(image.kubernetesVersion, kind.version))
  preflight.heed(judgeEngine(engine, image.kubernetesVersion, allowsCgroupV1(options.config)))
  const remote = engine.hostname !== undefined
  const loopback = !remote || engine.addresses.some(isLoopback)
  preflight.heed(judgeConfig(options, { kubernetesVersion: image.kubernetesVersion, loopback }))
  preflight.heed(judgeCapacity(options, nodeRoles(options).length, engine))

  const given = options.host === undefined ? undefined : await resolved(options.host)
  if (given?.addresses.length === 0) throw new Problem(`host: nothing resolves ${given.name} here`)
  const names = candidates(engine, given)
  const kubelet = reservationPatch(options, engine)
  const taken = ownRegistries(options.config) === undefined ? engine.registryMirrors : []
  const mirrors = nodeMirrors(options.registryMirrors, taken)
  const certsFolder =
    (options.registry !== undefined || mirrors.length > 0) && needsCertsFolder(image.kubernetesVersion)
  const configFor = (listenAddress: string): KindConfig =>
    kindConfig(options, {
      ...{ listenAddress, names, remote, kubelet, certsFolder },
      ...{ nodeImage: image.reference, dnsSearch: hasDnsSearch(kind.version) },
    })
  const reach = { names, listenAddress: listenAddress(given?.addresses ?? engine.addresses), configFor }
  configFor(reach.listenAddress)

  const plan = makePlan(options, engine, {
    identity: host.identity,
    unique: randomBytes(8).toString('hex'),
    now: now(),
    folder: host.folder,
    logsFolder: host.logsFolder,
    nodeImage: image.reference,
    ownContainer: await findOwnContainer(docker),
    builder,
  })
  notePlan(report, plan, kind.version)
  if (mayClash(options) || options.kubeconfig !== undefined) await found.tidied
  if (options.kubeconfig !== undefined) await checkKubeconfigOwner(docker, options.kubeconfig)
  const [{ images }] = await Promise.all([found.resolving, checkName(docker, plan)])
  // A pull that has failed by now fails before anything is made.
  await Promise.race([images, undefined])
  const buildx = builder && buildxAt(builder.fetched?.program, engine, world.run)
  const { tidied } = found
  return {
    world,
    options,
    docker,
    kind,
    preflight,
    plan,
    reach,
    mirrors,
    buildx,
    images,
    archives,
    nodeArchive,
    tidied,
  }
}
