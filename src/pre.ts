/** What happens before the job's commands, in this order. */
import { basename } from 'node:path'
import { beginRemoval } from './cluster/remove.ts'
import { dockerAt } from './engine/docker.ts'
import { thisProcess } from './lib/process.ts'
import { create } from './pre/create.ts'
import { decide, findMeans, readOptions } from './pre/decide.ts'
import { explain } from './pre/explain.ts'
import { exportAll } from './pre/export.ts'
import { makeReady } from './pre/make-ready.ts'
import { closingBlock, tellKept } from './report/facts.ts'
import { saveState, updateState } from './state.ts'
import type { World } from './world.ts'

/** Gives the job its cluster. What is made is in the saved plan before it is made, so that post can remove it. */
export async function pre(world: World): Promise<void> {
  const { host, runAnyway, signal, report } = world
  const options = readOptions(world)
  const use = await decide(world, options, await findMeans(world, options))
  const { plan } = use

  await host.remember(basename(plan.folder))
  saveState({ plan, stage: 'making', pre: thisProcess() })
  const hurry = (): void => void beginRemoval(dockerAt(plan.engine, runAnyway), plan).catch(() => {})
  // Where a cancelled job has seconds only, post takes the first of them to start.
  if (host.cancelLimit !== undefined) signal.addEventListener('abort', hurry)
  try {
    // A pull that fails ends what goes on beside it.
    const cluster = create(use)
    const [connection, ready] = await Promise.all([cluster, cluster.then(to => makeReady(use, to)), use.images])
    await exportAll(use, connection, ready)
    await use.tidied
    updateState(plan.folder, { stage: 'ready' })
    const { title, lines } = closingBlock(report, plan, performance.now())
    host.conclude(title, lines)
    if (plan.keep) tellKept(host, plan)
  } catch (error) {
    updateState(plan.folder, { stage: signal.aborted ? 'cancelled' : 'failed' })
    throw signal.aborted ? error : await explain(error, use)
  } finally {
    signal.removeEventListener('abort', hurry)
  }
}
