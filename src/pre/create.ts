/** Makes record, network, registry and nodes, and finds the address at which the API server answers. */
import { containerLimits } from '../cluster/capacity.ts'
import { fixedPorts, mountedPaths, nodeImages, withImages } from '../cluster/config.ts'
import { type Connection, connect } from '../cluster/connect.ts'
import { limitNodes, makeNetwork, makeNodes, makeRecord, nodeIds } from '../cluster/create.ts'
import { judgeSeen, probe } from '../engine/preflight.ts'
import { loadNodeImage } from '../images/node-archive.ts'
import { REGISTRY_IMAGE, type RegistryNames, registryNames, startRegistry } from '../images/registry.ts'
import { ensureImage, ensureNodeImages, resolvingAt } from '../images/resolve.ts'
import { thisProcess } from '../lib/process.ts'
import { noteAddresses } from '../report/facts.ts'
import { saveState } from '../state.ts'
import { logOf, type Use } from './use.ts'

/** What is there when the nodes are, and how it is reached. */
export interface Created extends Connection {
  readonly registry: RegistryNames | undefined
}

/** @throws Problem where the engine cannot run the nodes, kind cannot make them, or the step cannot reach them */
export function create({ world, options, plan, reach, kind, docker, preflight, nodeArchive }: Use): Promise<Created> {
  const { host, run: runner, timeline } = world
  const wish = {
    labels: plan.labels,
    image: plan.nodeImage,
    listenAddress: reach.listenAddress,
    ports: fixedPorts(options),
    mounts: mountedPaths(options.config),
    registryPort: options.registry?.port,
  }
  return host.group(`Create the cluster ${plan.cluster}`, async () => {
    const pulls = resolvingAt(plan, world)
    // An empty volume with labels, from which all that belongs to the cluster is found.
    await timeline.span('Make its record', () => makeRecord(docker, plan))
    if (nodeArchive !== undefined) await loadNodeImage(docker, nodeArchive, host.info)
    const [, place] = await Promise.all([
      timeline.span('Make its network', () => makeNetwork(docker, plan, options.config?.networking?.['ipFamily'])),
      timeline
        .span('Get the node image', () => ensureNodeImages(docker, nodeImages(options, plan.nodeImage), pulls))
        .then(async names => {
          const image = names.get(wish.image) ?? wish.image
          return { names, ...(await timeline.span('Probe the engine', () => probe(docker, { ...wish, image }))) }
        }),
      options.registry === undefined
        ? undefined
        : timeline.span("Get the registry's image", () => ensureImage(docker, REGISTRY_IMAGE, 'registry', pulls)),
    ])
    preflight.heed(judgeSeen(place.seen))
    if (place.listenAddress !== reach.listenAddress) {
      host.info(`The engine does not have the address ${reach.listenAddress} itself: it publishes on all that it has`)
    }
    return preflight.blame(async () => {
      const [port] = await Promise.all([
        plan.registry === undefined
          ? undefined
          : timeline.span('Start the registry', () =>
              startRegistry(docker, plan, {
                port: options.registry?.port,
                listenAddress: place.listenAddress,
                taken: wish.ports.flatMap(({ outer }) => outer ?? []),
              }),
            ),
        makeNodes(
          runner,
          docker,
          kind.path,
          plan,
          withImages(reach.configFor(place.listenAddress), place.names),
          logOf(world),
        ),
      ])
      const [nodes] = await Promise.all([
        nodeIds(docker, plan),
        limitNodes(docker, plan, containerLimits(options, plan.engine)),
      ])
      const making = { plan, stage: 'making', nodes, pre: thisProcess() } as const
      saveState(making)
      const onJoin = (): void => saveState({ ...making, joined: true })
      const connected = await timeline.span('Reach the API server', () =>
        connect(plan, kind.path, reach.names, options.ports, { docker, runner, onJoin, ...logOf(world) }),
      )
      const key = connected.kubeconfig.getCurrentUser()?.keyData
      if (key !== undefined) world.host.mask(key)
      const registry =
        plan.registry === undefined || port === undefined ? undefined : registryNames(plan.registry, port, connected)
      const created = { ...connected, registry }
      noteAddresses(world.report, plan, created)
      return created
    })
  })
}
