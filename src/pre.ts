/** What happens before the job's commands, in this order. */
import { randomBytes } from 'node:crypto'
import { basename, resolve } from 'node:path'
import {
  containerLimits,
  judgeCapacity,
  type NodeCapacity,
  readCapacity,
  reservationPatch,
  smallest,
} from './cluster/capacity.ts'
import { allowsCgroupV1, chosenImage, fixedPorts, kindConfig, mountedPaths, nodeImages } from './cluster/config.ts'
import { type Connection, connect } from './cluster/connect.ts'
import { checkName, limitNodes, makeNetwork, makeNodes, makeRecord } from './cluster/create.ts'
import { endedNodes } from './cluster/ended-nodes.ts'
import { installKind, installKubectl, type Program } from './cluster/install.ts'
import { judgeConfig } from './cluster/judge-config.ts'
import { checkKubeconfigPath } from './cluster/kubeconfig.ts'
import { deleteBootstrapToken, kubernetesVersion, waitUntilReady } from './cluster/ready.ts'
import { judgeVersions, nodeImage, refuseVersion, skew } from './cluster/versions.ts'
import { type Docker, dockerAt, networkSubnets } from './engine/docker.ts'
import { engineExports, findEngine, resolved } from './engine/engine.ts'
import { isLoopback } from './engine/find.ts'
import { findOwnContainer } from './engine/own-container.ts'
import { type Heed, heeding, judgeEngine, judgeSeen, probe } from './engine/preflight.ts'
import { aroundProxy, hasProxy } from './engine/proxy.ts'
import { candidates, listenAddress } from './engine/reach.ts'
import { checkImages, ensureNodeImages } from './images/present.ts'
import { streamImages } from './images/stream.ts'
import type { KindConfig } from './kind-config.ts'
import { formatBytes } from './lib/bytes.ts'
import { messageOf, Problem } from './lib/problem.ts'
import { thisProcess } from './lib/process.ts'
import { memoryQuantity } from './lib/quantity.ts'
import { readTextFile } from './lib/text-file.ts'
import { type Options, parse } from './options.ts'
import { type Outputs, portsOutput, variablesOf } from './outputs.ts'
import { type Engine, makePlan, nodeRoles, type Plan } from './plan.ts'
import { tellFacts } from './report/facts.ts'
import { saveState, updateState } from './state.ts'
import type { World } from './world.ts'

/** Gives the job its cluster. What is made is in the saved plan before it is made, so that post can remove it. */
export async function pre(world: World): Promise<void> {
  const { host, signal } = world
  const options = readOptions(world)
  maskCredentials(host, options)
  const { engine, kind } = await findEngineGetKind(world, options)
  const docker = dockerAt(engine, world.run)
  const preflight = heeding(host)
  const { plan, reach } = await decide(world, options, engine, kind, docker, preflight)

  await host.remember(basename(plan.folder))
  saveState({ plan, stage: 'making', pre: thisProcess() })
  try {
    const connection = await create(world, options, plan, reach, kind, docker, preflight)
    const { version, kubectl, capacity } = await preflight.blame(() =>
      makeReady(world, options, plan, connection, docker),
    )
    await exportAll(world, plan, connection, { version, capacity }, [kind.folder, kubectl?.folder], docker)
    updateState(plan.folder, { stage: 'ready' })
    tellFacts(host, plan, connection, version, capacity, options.wait > 0)
  } catch (error) {
    updateState(plan.folder, { stage: signal.aborted ? 'cancelled' : 'failed' })
    throw signal.aborted ? error : await withEndedNodes(error, docker, plan)
  }
}

function readOptions({ host }: World): Options {
  const options = parse(host.given(), { readFile: readTextFile, refuseVersion })
  if (options.kubeconfig === undefined) return options
  // Later commands of the job may run in other folders.
  const kubeconfig = resolve(options.kubeconfig)
  checkKubeconfigPath(kubeconfig)
  return { ...options, kubeconfig }
}

/** A mirror's user and password are for the download alone. */
function maskCredentials(host: World['host'], options: Options): void {
  for (const url of Object.values(options.downloadUrls)) {
    const password = /:\/\/[^/@:]*:([^/@]+)@/.exec(url)?.[1]
    if (password !== undefined) host.mask(password)
  }
}

/** The engine is waited for while kind is downloaded. */
function findEngineGetKind(world: World, options: Options): Promise<{ engine: Engine; kind: Program }> {
  const { host } = world
  return host.group('Find the Docker engine, get kind', async () => {
    const [engine, kind] = await Promise.all([
      findEngine(options, { ...logOf(world), env: host.env }),
      installKind({ ...toolsOf(world), version: options.kindVersion, url: options.downloadUrls.kind }),
    ])
    host.info(`Docker ${engine.version} at ${engine.address}, found by ${engine.source}`)
    if (kind.folder !== undefined) host.info(`kind ${kind.version} at ${kind.path}`)
    return { engine, kind }
  })
}

/** How the step may get to what the engine publishes. */
interface Reach {
  /** The names and addresses to try. */
  readonly names: readonly string[]
  /** The engine's address to publish on. */
  readonly listenAddress: string
  readonly configFor: (listenAddress: string) => KindConfig
}

/** Decides on everything that will be made. What cannot work is said here, before anything is made. */
async function decide(
  { host, now }: World,
  options: Options,
  engine: Engine,
  kind: Program,
  docker: Docker,
  preflight: Heed,
): Promise<{ plan: Plan; reach: Reach }> {
  const image = nodeImage(chosenImage(options), kind.version)
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
  const configFor = (listenAddress: string): KindConfig =>
    kindConfig(options, { listenAddress, names, remote, kubelet, nodeImage: image.reference })
  const reach = { names, listenAddress: listenAddress(given?.addresses ?? engine.addresses), configFor }
  configFor(reach.listenAddress)

  const plan = makePlan(options, engine, {
    identity: host.identity,
    unique: randomBytes(8).toString('hex'),
    now: now(),
    folder: host.folder,
    nodeImage: image.reference,
    ownContainer: await findOwnContainer(docker),
  })
  await Promise.all([checkName(docker, plan), checkImages(docker, options.images)])
  return { plan, reach }
}

/** Makes record, network and nodes, and finds the address at which the API server answers. */
function create(
  world: World,
  options: Options,
  plan: Plan,
  reach: Reach,
  kind: Program,
  docker: Docker,
  preflight: Heed,
): Promise<Connection> {
  const { host, run: runner } = world
  const wish = {
    cluster: plan.cluster,
    image: plan.nodeImage,
    listenAddress: reach.listenAddress,
    ports: fixedPorts(options),
    mounts: mountedPaths(options.config),
  }
  return host.group(`Create the cluster ${plan.cluster}`, async () => {
    // An empty volume with labels, from which all that belongs to the cluster is found.
    await makeRecord(docker, plan)
    const [, place] = await Promise.all([
      makeNetwork(docker, plan, options.config?.networking?.['ipFamily']),
      ensureNodeImages(docker, nodeImages(options, plan.nodeImage), plan.engine.architecture, host.info).then(() =>
        probe(docker, wish),
      ),
    ])
    preflight.heed(judgeSeen(place.seen))
    if (place.listenAddress !== reach.listenAddress) {
      host.info(`The engine does not have the address ${reach.listenAddress} itself: it publishes on all that it has`)
    }
    return preflight.blame(async () => {
      await makeNodes(runner, kind.path, plan, reach.configFor(place.listenAddress), host)
      await limitNodes(docker, plan, containerLimits(options, plan.engine))
      const onJoin = (): void => saveState({ plan, stage: 'making', joined: true, pre: thisProcess() })
      return connect(plan, kind.path, reach.names, options.ports, { docker, runner, onJoin, ...logOf(world) })
    })
  })
}

/** Nodes become ready while images stream into them and kubectl is downloaded. */
function makeReady(
  world: World,
  options: Options,
  plan: Plan,
  { kubeconfig }: Connection,
  docker: Docker,
): Promise<{ version: string; kubectl: Program | undefined; capacity: readonly NodeCapacity[] }> {
  const { host } = world
  return host.group(options.wait > 0 ? 'Load images, wait until all is ready' : 'Load images', async () => {
    const version = await kubernetesVersion(kubeconfig)
    const [kubectl] = await Promise.all([
      installKubectl({
        ...toolsOf(world),
        version: options.kubectlVersion,
        kubernetesVersion: version,
        url: options.downloadUrls.kubectl,
      }),
      options.wait > 0 ? waitUntilReady(kubeconfig, plan.nodes, options.wait, logOf(world)) : undefined,
      streamImages(docker, options.images, plan.nodes).then(bytes => {
        if (bytes > 0) host.info(`Loaded into every node: ${options.images.join(', ')} (${formatBytes(bytes)})`)
      }),
      deleteBootstrapToken(kubeconfig),
    ])
    const skewed = kubectl === undefined ? undefined : skew(kubectl.version, version)
    if (skewed !== undefined) host.warning(skewed)
    return { version, kubectl, capacity: await readCapacity(kubeconfig) }
  })
}

/** Gives the later commands of the job what they need to reach the cluster and, where it had to be found, the engine. */
async function exportAll(
  { host }: World,
  plan: Plan,
  { server, host: reached, ports }: Connection,
  { version, capacity }: { readonly version: string; readonly capacity: readonly NodeCapacity[] },
  folders: readonly (string | undefined)[],
  docker: Docker,
): Promise<void> {
  const least = smallest(capacity)
  const outputs: Outputs = {
    name: plan.cluster,
    kubeconfig: plan.kubeconfig,
    'kubeconfig-internal': plan.internalKubeconfig,
    server,
    host: reached,
    ports: portsOutput(ports),
    network: plan.network,
    'node-image': plan.nodeImage,
    'kubernetes-version': version,
    cpus: `${least.cpus}`,
    memory: memoryQuantity(least.memory),
  }
  const subnets = hasProxy(host.env) ? (await docker.run(networkSubnets(plan.network))).stdout.trim().split('\n') : []
  await host.setOutputs(outputs)
  await host.exportVariables({
    ...variablesOf(outputs, ports),
    ...engineExports(plan.engine, host.env),
    ...aroundProxy(host.env, [...candidates(plan.engine, undefined), reached, ...plan.nodes, ...subnets, '.svc']),
  })
  for (const folder of folders) if (folder !== undefined) await host.addPath(folder)
}

/** A failure with what became of the nodes, where one of them does not run any more. */
async function withEndedNodes(error: unknown, docker: Docker, plan: Plan): Promise<unknown> {
  const ended = await endedNodes(docker, plan).catch(() => [])
  return ended.length === 0 ? error : new Problem([messageOf(error), ...ended].join('\n'))
}

function logOf({ host, signal }: World) {
  return { signal, info: host.info, debug: host.debug, warning: host.warning }
}

function toolsOf(world: World) {
  return {
    runner: world.run,
    log: logOf(world),
    now: world.now,
    platform: { os: process.platform, arch: process.arch },
    cacheFolder: world.host.env['RUNNER_TOOL_CACHE'],
    folder: world.host.env['RUNNER_TEMP'] ?? world.host.folder,
  }
}
