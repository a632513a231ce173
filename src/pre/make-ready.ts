/** Nodes become ready while images stream into them and kubectl is downloaded. */
import { type NodeCapacity, readCapacity } from '../cluster/capacity.ts'
import { installKubectl } from '../cluster/install.ts'
import type { Program } from '../cluster/program.ts'
import { deleteBootstrapToken, kubernetesVersion, waitUntilReady } from '../cluster/ready.ts'
import { tellRegistry } from '../cluster/registry-hosting.ts'
import { skew } from '../cluster/versions.ts'
import { writeInNodes } from '../images/hosts.ts'
import { loadImages } from '../images/load.ts'
import { loadedFigures } from '../images/loaded.ts'
import { mirrorFiles } from '../images/mirrors.ts'
import { awaitRegistry, registryHosts } from '../images/registry.ts'
import { noteReady } from '../report/facts.ts'
import type { Created } from './create.ts'
import { startBuilderIn } from './start-builder.ts'
import { logOf, toolsOf, type Use } from './use.ts'

/** What is known of a cluster once it can be used. */
export interface Ready {
  /** The API server's own, such as v1.34.0. */
  readonly version: string
  /** Undefined where the job has, or wants, none of ours. */
  readonly kubectl: Program | undefined
  readonly capacity: readonly NodeCapacity[]
}

/** @throws Problem where the cluster is not ready in time or an image does not get into a node */
export function makeReady(use: Use, created: Created): Promise<Ready> {
  const { world, options, plan, preflight } = use
  const { host, timeline, report } = world
  const { kubeconfig } = created
  const title = options.wait > 0 ? 'Load images, wait until all is ready' : 'Load images'
  return preflight.blame(() =>
    host.group(title, async () => {
      const version = await kubernetesVersion(kubeconfig)
      const [kubectl] = await Promise.all([
        timeline.span('Get kubectl', () =>
          installKubectl({
            ...toolsOf(world),
            version: options.kubectlVersion,
            kubernetesVersion: version,
            url: options.downloadUrls.kubectl,
          }),
        ),
        options.wait > 0 ? waitUntilReady(kubeconfig, plan.nodes, options.wait, logOf(world)) : undefined,
        openRegistry(use, created),
        loadAll(use).then(() => startBuilderIn(use, created)),
        tellNodesOfRegistries(use, created),
        deleteBootstrapToken(kubeconfig),
      ])
      const skewed = kubectl === undefined ? undefined : skew(kubectl.version, version)
      if (skewed !== undefined) host.warning(skewed)
      const ready = { version, kubectl, capacity: await readCapacity(kubeconfig) }
      noteReady(report, ready, options.wait > 0)
      return ready
    }),
  )
}

/** Tells the nodes of the job's registry and of mirrors. */
function tellNodesOfRegistries({ mirrors, plan, docker }: Use, { registry }: Created): Promise<void> {
  return writeInNodes(docker, plan.nodes, [
    ...mirrorFiles(mirrors),
    ...(registry === undefined ? [] : registryHosts(registry)),
  ])
}

/** Tells the cluster of the registry, and sees that it answers. */
async function openRegistry({ world, plan, docker }: Use, { kubeconfig, registry }: Created): Promise<void> {
  if (registry === undefined) return
  await world.timeline.span('Open the registry', () =>
    Promise.all([
      awaitRegistry(docker, plan, registry.step, world.signal),
      tellRegistry(kubeconfig, {
        host: registry.engine,
        hostFromContainerRuntime: registry.internal,
        hostFromClusterNetwork: registry.internal,
        help: `push with docker to ${registry.engine}, with other tools of the job to ${registry.step}; pods pull by either name`,
      }),
    ]),
  )
}

async function loadAll({ world: { host, report, timeline }, plan, docker, images, archives }: Use): Promise<void> {
  const references = await images
  const loaded = await timeline.span('Load images', () =>
    loadImages(docker, plan, { references, archives }, plan.nodes, host),
  )
  report.images.push(...loaded.map(loadedFigures))
}
