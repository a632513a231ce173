/** What happens before the job's commands, in this order. */
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { allowsCgroupV1, kindConfig } from './cluster/config.ts'
import { type Connection, connect } from './cluster/connect.ts'
import { checkName, makeNetwork, makeNodes, makeRecord } from './cluster/create.ts'
import { installKind, installKubectl } from './cluster/install.ts'
import { deleteBootstrapToken, kubernetesVersion, waitUntilReady } from './cluster/ready.ts'
import { judgeVersions, nodeImage } from './cluster/versions.ts'
import { dockerAt } from './engine/docker.ts'
import { engineExports, findEngine, resolved } from './engine/engine.ts'
import { findOwnContainer } from './engine/own-container.ts'
import { heeding, judgeEngine, judgeSeen, probe } from './engine/preflight.ts'
import { candidates, listenAddress } from './engine/reach.ts'
import { checkImages, ensureNodeImage } from './images/present.ts'
import { streamImages } from './images/stream.ts'
import { formatBytes } from './lib/bytes.ts'
import { thisProcess } from './lib/process.ts'
import { parse } from './options.ts'
import { type Outputs, portsOutput, variablesOf } from './outputs.ts'
import { makePlan, type Plan } from './plan.ts'
import { saveState } from './state.ts'
import type { World } from './world.ts'

/** Gives the job its cluster. What is made is in the saved plan before it is made, so that post can remove it. */
export async function pre(world: World): Promise<void> {
  const { host, run: runner, signal } = world
  const log = { signal, info: host.info, debug: host.debug, warning: host.warning }
  const tools = {
    runner,
    log,
    now: world.now,
    platform: { os: process.platform, arch: process.arch },
    cacheFolder: host.env['RUNNER_TOOL_CACHE'],
    folder: host.env['RUNNER_TEMP'] ?? host.folder,
  }

  const options = parse(host.given(), path => (existsSync(path) ? readFileSync(path, 'utf8') : undefined))
  const { engine, kind } = await host.group('Find the Docker engine, get kind', async () => {
    const [engine, kind] = await Promise.all([
      findEngine(options, { env: host.env, ...log }),
      installKind({ ...tools, version: options.kindVersion, url: options.downloadUrls.kind }),
    ])
    host.info(`Docker ${engine.version} at ${engine.address}, found by ${engine.source}`)
    host.info(`kind ${kind.version} at ${kind.path}`)
    return { engine, kind }
  })
  const docker = dockerAt(engine, runner)
  const image = nodeImage(options.nodeImage, kind.version)
  const preflight = heeding(host)
  preflight.heed(judgeVersions(image.kubernetesVersion, kind.version))
  preflight.heed(judgeEngine(engine, image.kubernetesVersion, allowsCgroupV1(options.config)))
  const given = options.host === undefined ? undefined : await resolved(options.host)
  const names = candidates(engine, given)
  const configFor = (listenAddress: string) =>
    kindConfig(options, { listenAddress, names, remote: engine.hostname !== undefined })
  const wishedAddress = listenAddress(given?.addresses ?? engine.addresses)
  configFor(wishedAddress) // What cannot go together is said before anything is made.

  const plan = makePlan(options, engine, {
    identity: host.identity,
    unique: randomBytes(8).toString('hex'),
    now: world.now(),
    folder: host.folder,
    nodeImage: image.reference,
    ownContainer: await findOwnContainer(docker),
  })
  await Promise.all([checkName(docker, plan), checkImages(docker, options.images)])

  await host.remember(plan.cluster)
  saveState({ plan, stage: 'making', pre: thisProcess() })
  try {
    const connection = await host.group(`Create the cluster ${plan.cluster}`, async () => {
      await makeRecord(docker, plan)
      const [, place] = await Promise.all([
        makeNetwork(docker, plan),
        ensureNodeImage(docker, plan.nodeImage, engine.architecture, host.info).then(() =>
          probe(docker, {
            cluster: plan.cluster,
            image: plan.nodeImage,
            listenAddress: wishedAddress,
            ports: options.ports,
          }),
        ),
      ])
      if (place.listenAddress !== wishedAddress) {
        host.info(`The engine itself does not have the address ${wishedAddress}: it publishes ports on all that it has`)
      }
      preflight.heed(judgeSeen(place.seen))
      await makeNodes(runner, kind.path, plan, configFor(place.listenAddress), host.debug)
      return connect(plan, kind.path, names, options.ports, { docker, runner, ...log })
    })
    const { kubeconfig } = connection
    const ready = await host.group('Load images, wait until all is ready', async () => {
      const [version] = await Promise.all([
        kubernetesVersion(kubeconfig),
        deleteBootstrapToken(kubeconfig),
        options.wait > 0 ? waitUntilReady(kubeconfig, plan.nodes, options.wait, log) : undefined,
        streamImages(docker, options.images, plan.nodes).then(bytes => {
          if (bytes > 0) host.info(`${options.images.join(', ')} in every node: ${formatBytes(bytes)} read once`)
        }),
      ])
      const kubectl = { version: options.kubectlVersion, kubernetesVersion: version, url: options.downloadUrls.kubectl }
      return { version, kubectl: await installKubectl({ ...tools, ...kubectl }) }
    })
    await exportAll(world, plan, connection, ready.version, [kind.folder, ready.kubectl?.folder])
    saveState({ plan, stage: 'ready' })
    tellFacts(world, plan, connection, ready.version)
  } catch (error) {
    saveState({ plan, stage: signal.aborted ? 'cancelled' : 'failed' })
    throw preflight.recall(error)
  }
}

/** Gives the later commands of the job what they need to reach the cluster and, where it had to be found, the engine. */
async function exportAll(
  { host }: World,
  plan: Plan,
  { server, host: reached, ports }: Connection,
  version: string,
  folders: readonly (string | undefined)[],
): Promise<void> {
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
  }
  await host.setOutputs(outputs)
  await host.exportVariables({ ...variablesOf(outputs, ports), ...engineExports(plan.engine, host.env) })
  for (const folder of folders) if (folder !== undefined) await host.addPath(folder)
}

/** The closing block: the facts that people copy. */
function tellFacts({ host }: World, plan: Plan, { server, ports }: Connection, version: string): void {
  host.info(`Kubernetes ${version} is ready: context kind-${plan.cluster}, ${server}`)
  for (const port of ports) host.info(`NodePort ${port.node} is at ${port.host}:${port.outer}`)
  if (plan.keep) host.warning(`keep: the cluster stays up after the job; remove it with: ${removalCommand(plan)}`)
}

function removalCommand({ cluster, network, record }: Plan): string {
  const nodes = `$(docker ps -aq --filter label=io.x-k8s.kind.cluster=${cluster})`
  return `docker rm -fv ${nodes} && docker network rm ${network} && docker volume rm ${record}`
}
