/** Makes a failure tell all that is known of it while the nodes are still there. */
import { endedNodes } from '../cluster/ended-nodes.ts'
import { exportLogs } from '../cluster/export-logs.ts'
import { kubeletFailures } from '../cluster/telling-lines.ts'
import { whyGone } from '../engine/engine.ts'
import { isDiskFull, NO_SPACE } from '../engine/preflight.ts'
import { NoImage } from '../images/pull.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Use } from './use.ts'

const FULL =
  "the disk of the engine is full: give it more, or free some (docker system df shows what takes it); what was made here goes with the job's end"

/**
 * Exports the logs of a start that failed: nobody could do it after the job, whose folder is emptied by then.
 *
 * @returns the failure, with what became of the engine, of nodes that do not run any more and the lines of the logs that say why
 */
export async function explain(error: unknown, { world, docker, plan }: Use): Promise<unknown> {
  if (error instanceof NoImage) return error
  // An engine that does not even answer has no logs to give.
  const gone = await whyGone(plan.engine)
  if (gone !== undefined) return new Problem([messageOf(error), gone].join('\n'))
  const { host, signal } = world
  const wanted = plan.logs === 'never' ? undefined : plan.logsDir
  const { folder, files } = await exportLogs(docker, plan, wanted, host, signal)
  world.report.logsDir = folder
  if (folder !== undefined) await host.setOutputs({ 'logs-dir': folder })
  // Not before: what ran in a node is gone a moment before the engine says that the node is.
  const ended = await endedNodes(docker, plan).catch(() => [])
  const disks = plan.nodes.map(node => files.get(`${node}/disk.txt`)?.toString('utf8') ?? '')
  const isFull =
    NO_SPACE.test(messageOf(error)) ||
    disks.some(disk => / 100% /.test(disk)) ||
    // A node that has ended tells nothing of its disk.
    (ended.length > 0 && (await isDiskFull(docker, plan.nodes, plan.labels).catch(() => false)))
  const full = isFull ? [FULL] : []
  const more = [...full, ...ended, ...kubeletFailures(files, plan.nodes)]
  return more.length === 0 ? error : new Problem([messageOf(error), ...more].join('\n'))
}
