/** What happens after the job's commands, in this order. It is safe to run again, also when it was ended half-way. */
import { rmSync } from 'node:fs'
import { buildxAt } from './builder/buildx.ts'
import { removeBuilder } from './builder/remove.ts'
import { isOurs } from './cluster/kubeconfig.ts'
import { removeCluster } from './cluster/remove.ts'
import { dockerAt } from './engine/docker.ts'
import { formatDuration } from './lib/duration.ts'
import { messageOf } from './lib/problem.ts'
import { endProcess, endStrays } from './lib/process.ts'
import type { Plan } from './plan.ts'
import { lookBack } from './post/look-back.ts'
import { tellKept } from './report/facts.ts'
import { forgetState, loadState } from './state.ts'
import type { World } from './world.ts'

/** Takes down what this job's uses made, whatever became of them. A use that cannot be removed does not keep the others. */
export async function post(world: World): Promise<void> {
  const uses = await world.host.uses()
  if (uses.length === 0) {
    world.host.info('There is no cluster to remove.')
    await endStrays()
  }
  const folders = uses.map(use => `${world.host.folder}/${use}`)
  const removal = Promise.allSettled(folders.map(folder => removeUse(world, folder)))
  const results = await inTime(removal, limitOf(world, folders))
  if (results === undefined) return tellDetached(world)
  for (const result of results) if (result.status === 'rejected') throw result.reason
}

/** How long the removal may take, in milliseconds: less where the job was cancelled and the host will not wait. */
function limitOf({ host }: World, folders: readonly string[]): number | undefined {
  const cancelled = host.jobStatus() === 'cancelled' || folders.some(folder => loadState(folder)?.stage === 'cancelled')
  return cancelled ? host.cancelLimit : undefined
}

/** @returns undefined where it takes longer than the limit */
async function inTime<T>(work: Promise<T>, limit: number | undefined): Promise<T | undefined> {
  if (limit === undefined) return work
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<undefined>(resolve => {
    timer = setTimeout(() => resolve(undefined), limit)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** The engine goes on with what it was asked for; `docker rm` of all containers is the first of it. */
function tellDetached({ host }: World): void {
  host.warning(
    `The engine has not removed all within ${formatDuration(host.cancelLimit ?? 0)}, and a cancelled job has no more time: it goes on, and what it leaves is removed by the next job of this agent, or by any when its lifetime is over`,
  )
}

/** How long a pre that still runs may take to end by itself, in milliseconds; it is gone within a second of a signal. */
const PATIENCE = 1500

/** What it cannot take out of buildx' configuration is no reason to leave a cluster. */
async function forgetBuilder({ host, run }: World, { builder, engine }: Plan): Promise<void> {
  if (builder === undefined) return
  await removeBuilder(buildxAt(builder.fetched?.program, engine, run), builder).catch(error =>
    host.warning(messageOf(error)),
  )
}

async function removeUse(world: World, folder: string): Promise<void> {
  const state = loadState(folder)
  if (state === undefined) return world.host.info('Nothing was made, or all was removed before.')
  const { plan } = state
  // What a failed pre made is nothing to look at, and on a terminal somebody asks for the removal.
  if (plan.keep && state.stage === 'ready' && world.host.name !== 'terminal') return tellKept(world.host, plan)
  await lookBack(world, state)
  await world.host.group(`Remove the cluster ${plan.cluster}`, async () => {
    if (state.pre && (await endProcess(state.pre, PATIENCE)))
      world.host.info('Ended the start of the cluster, which was still under way')
    await endStrays()
    const container = state.joined ? plan.ownContainer : undefined
    const [removed] = await Promise.all([
      removeCluster(dockerAt(plan.engine, world.run), plan, {
        container,
        seen: state.nodes ?? [],
        cgroupVersion: plan.engine.cgroupVersion,
      }),
      forgetBuilder(world, plan),
    ])
    world.host.info(removed === undefined ? `Nothing of ${plan.cluster} is on the engine` : `Removed ${removed}`)
    if (isOurs(plan.kubeconfig, plan.cluster)) rmSync(plan.kubeconfig)
    forgetState(folder)
  })
}
