/** Removes what jobs that were killed left on this machine and on the engine, beside all else that pre does. */
import { buildxAt } from '../builder/buildx.ts'
import { removeLeftBuilders } from '../builder/remove.ts'
import { reap } from '../cluster/reap.ts'
import { dockerAt } from '../engine/docker.ts'
import { messageOf } from '../lib/problem.ts'
import { endStrays } from '../lib/process.ts'
import type { Options } from '../options.ts'
import type { Engine } from '../plan.ts'
import type { World } from '../world.ts'
import { tidyFolders } from './tidy-folders.ts'

/** How long it may take, in milliseconds: less than a cluster takes to start. */
const LIMIT = 30_000

/** Never rejects: what cannot be removed is a warning, and the next job's to try. */
export async function tidy(world: World, engine: Engine): Promise<void> {
  const { host, run, now, signal } = world
  try {
    // First, since a pre that outlived its job, and what one that was killed had run, go on making what is removed.
    const folders = await tidyFolders(world)
    await endStrays()
    if (folders.length > 0) host.info(`Removed what other jobs left on this machine: ${folders.join('; ')}`)
    const clock = (): number => now() + engine.clockAhead
    const docker = dockerAt(engine, run)
    const { removed, failed, uses } = await reap(docker, host.identity, clock, LIMIT, engine.cgroupVersion)
    const buildx = buildxAt(undefined, engine, run)
    for (const why of await removeLeftBuilders(buildx, host.env, uses, now())) host.debug(why)
    if (removed.length > 0) host.info(`Removed what other jobs left on the engine: ${removed.join('; ')}`)
    if (failed.length > 0 && !signal.aborted) {
      host.warning(`What other jobs left on the engine is still there: ${failed.join('; ')}`)
    }
  } catch (error) {
    if (!signal.aborted)
      host.warning(`What other jobs may have left on the engine was not removed: ${messageOf(error)}`)
  }
}

/** Whether what another job left can be in the way of this one: everything else has names and ports of its own. */
export function mayClash(options: Pick<Options, 'name' | 'config' | 'network' | 'ports'>): boolean {
  const { name, config, network, ports } = options
  return [name, config, network].some(given => given !== undefined) || ports.some(({ outer }) => outer !== undefined)
}
