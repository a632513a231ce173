/** What other jobs left on the engine: what of it may go, and its removal. */
import type { Docker } from '../engine/docker.ts'
import { formatDuration } from '../lib/duration.ts'
import { messageOf } from '../lib/problem.ts'
import { endStrays } from '../lib/process.ts'
import { recordName } from '../plan.ts'
import { removeCluster, removeThings } from './remove.ts'
import { type Holding, survey } from './survey.ts'

/** Whose job this is; see `Identity`. */
export interface Me {
  readonly owner: string
  readonly job: string
}

/**
 * Why a holding, or a job's folder, may be removed by this job: a phrase for people; undefined where it must stay.
 *
 * An owner runs one job at a time, so what it has of another job is left over, unless it was to be kept. What is past its expiry
 * is anyone's, but for this job itself, which is there and uses it.
 *
 * @param now milliseconds since 1970 by the engine's clock, by which expiries are told
 */
export function staleness(
  holding: Pick<Holding, 'owner' | 'job' | 'expiry' | 'kept'>,
  me: Me,
  now: number,
): string | undefined {
  if (holding.job === me.job) return undefined
  if (holding.expiry !== undefined && holding.expiry * 1000 <= now) {
    return `expired ${formatDuration(now - holding.expiry * 1000)} ago`
  }
  if (!holding.kept && holding.owner !== '' && holding.owner === me.owner) return `left by the job ${holding.job}`
  return undefined
}

export interface Reaped {
  /** What was removed and why, a phrase for each cluster. */
  readonly removed: readonly string[]
  /** What could not be removed, a sentence for each cluster. */
  readonly failed: readonly string[]
  /** The uses that were over, whether or not all of theirs could be removed. */
  readonly uses: readonly Pick<Holding, 'cluster' | 'use'>[]
}

/**
 * Removes what other jobs left on the engine. Others may be at the same at the same time: what is gone meanwhile is no failure.
 *
 * @param clock milliseconds since 1970 by the engine's clock
 * @param limit milliseconds that it may take
 * @param cgroupVersion the engine's, where it is known
 * @throws Problem where the engine does not tell what it has
 */
export async function reap(
  docker: Docker,
  me: Me,
  clock: () => number,
  limit: number,
  cgroupVersion?: string,
): Promise<Reaped> {
  const deadline = performance.now() + limit
  const left = (): number => Math.max(1, deadline - performance.now())
  const { holdings } = await survey(docker, limit)
  const stale = holdings.flatMap(holding => {
    const why = staleness(holding, me, clock())
    return why === undefined ? [] : [{ holding, why }]
  })
  if (stale.length === 0) return { removed: [], failed: [], uses: [] }

  // A job that was killed may have left commands that go on making what is removed here.
  await endStrays()
  const removed: string[] = []
  const failed: string[] = []
  await Promise.all(
    stale.map(async ({ holding, why }) => {
      try {
        const what = await removeHolding(docker, holding, left(), cgroupVersion)
        if (what !== undefined) removed.push(`${what}: ${why}`)
      } catch (error) {
        failed.push(`${holding.cluster}: ${messageOf(error)}`)
      }
    }),
  )
  return { removed: removed.sort(), failed: failed.sort(), uses: stale.map(({ holding }) => holding) }
}

/** @returns what was removed; undefined where nothing was there any more, or nothing could go yet */
async function removeHolding(
  docker: Docker,
  holding: Holding,
  limit: number,
  cgroupVersion: string | undefined,
): Promise<string | undefined> {
  const { cluster, use, network, planned } = holding
  const record = recordName(cluster)
  if (!holding.hasRecord) return removeThings(docker, holding, limit)
  const registry = planned.find(name => name === `${cluster}-registry`)
  const nodes = planned.filter(name => name !== registry)
  const target = { cluster, use, record, network, nodes, registry, networkIsTheUsers: network !== record }
  return removeCluster(docker, target, { limit, cgroupVersion })
}
