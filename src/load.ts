/** The command and sub-action `load`: images for a cluster that is up, later in the job. */
import { chooseNodes, parseLoad } from './commands.ts'
import { dockerAt } from './engine/docker.ts'
import { namesIn, readArchives, splitImages } from './images/archive.ts'
import { loadImages } from './images/load.ts'
import { resolveImages, resolvingAt, warnOfLatest } from './images/resolve.ts'
import { Problem } from './lib/problem.ts'
import { loadState } from './state.ts'
import type { World } from './world.ts'

/** Loads images into the nodes of the job's cluster: the same engine, no options repeated. */
export async function load(world: World): Promise<void> {
  const { host, run } = world
  const options = parseLoad(host.given())
  const state = loadState(`${host.folder}/${host.chosen(options.name)}`)
  if (state?.stage !== 'ready') {
    throw new Problem(`the cluster ${state?.plan.cluster ?? ''} is not up: its start ${said(state?.stage)}`)
  }
  const { plan } = state
  const nodes = chooseNodes(options.nodes, plan.nodes, plan.cluster)
  const docker = dockerAt(plan.engine, run)
  await host.group(`Load images into ${plan.cluster}`, async () => {
    const { references, archives: paths } = splitImages(options.images)
    const wanted = { images: references, pull: plan.pull }
    const [archives, { images }] = await Promise.all([
      readArchives(paths, 'images', plan.engine.architecture),
      resolveImages(docker, wanted, resolvingAt(plan, world)),
    ])
    warnOfLatest(namesIn(archives), host)
    await loadImages(docker, plan, { references: await images, archives }, nodes, host)
  })
}

function said(stage: string | undefined): string {
  return stage === 'making' ? 'is under way' : stage === 'cancelled' ? 'was cancelled' : 'failed'
}
