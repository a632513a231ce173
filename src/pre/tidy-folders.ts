/** Removes what jobs that were killed left on this machine: processes that still make a cluster, and their folders. */
import { rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { buildxAt } from '../builder/buildx.ts'
import { removeBuilder } from '../builder/remove.ts'
import { isOurs } from '../cluster/kubeconfig.ts'
import { staleness } from '../cluster/reap.ts'
import type { JobFolder } from '../host/host.ts'
import { messageOf } from '../lib/problem.ts'
import { endProcess } from '../lib/process.ts'
import { LIFETIME } from '../options.ts'
import { forgetState, loadStates, type State } from '../state.ts'
import type { World } from '../world.ts'

/** How long a pre that outlived its job may take to end by itself, in milliseconds. */
const PATIENCE = 1500

/**
 * By the rule for what is on the engine, `staleness`. Where a job was killed before it had a plan, its folder's mark says whose
 * it is; where there is none either, it is over when no job lasts so long.
 *
 * @returns what was removed and why, a phrase for each job
 */
export async function tidyFolders(world: World): Promise<string[]> {
  const removed: string[] = []
  for (const folder of world.host.jobFolders()) {
    try {
      const why = await tidyFolder(world, folder)
      if (why !== undefined) removed.push(`${basename(folder.path)}: ${why}`)
    } catch (error) {
      // Another job may be at it too.
      world.host.debug(`${folder.path}: ${messageOf(error)}`)
    }
  }
  return removed
}

/** @returns why, where anything was removed */
async function tidyFolder(world: World, { path, files, mark, changed }: JobFolder): Promise<string | undefined> {
  const { host, now } = world
  const states = loadStates(path)
  const stale = states.flatMap(state => {
    const { owner, job, expiry, keep, engine } = state.plan
    const why = staleness({ owner, job, expiry, kept: keep }, host.identity, now() + engine.clockAhead)
    return why === undefined ? [] : [{ state, why }]
  })
  for (const { state } of stale) await removeUse(world, path, state)
  if (path === host.folder || stale.length < states.length) return stale[0]?.why

  const { owner, job } = mark ?? { owner: '', job: '' }
  const expiry = (changed + LIFETIME) / 1000
  const why = stale[0]?.why ?? staleness({ owner, job, expiry, kept: false }, host.identity, now())
  if (why === undefined) return undefined
  if (mark !== undefined) await endProcess(mark.process, PATIENCE)
  for (const one of [path, ...files]) rmSync(one, { recursive: true, force: true })
  return why
}

/** What of a use is on this machine; the engine's part is found by its labels. */
async function removeUse({ host, run }: World, folder: string, { plan, pre }: State): Promise<void> {
  if (pre !== undefined) await endProcess(pre, PATIENCE)
  const { builder, engine, kubeconfig, cluster } = plan
  if (builder !== undefined) {
    await removeBuilder(buildxAt(builder.fetched?.program, engine, run), builder).catch(error =>
      host.debug(messageOf(error)),
    )
  }
  if (isOurs(kubeconfig, cluster)) rmSync(kubeconfig)
  forgetState(join(folder, basename(plan.folder)))
}
