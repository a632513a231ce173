/** The command and sub-action `logs`: what the cluster's nodes and the engine tell, in files, while the job runs. */
import { resolve } from 'node:path'
import { exportLogs } from './cluster/export-logs.ts'
import { kubeletFailures, whatIsWrong } from './cluster/telling-lines.ts'
import { parseLogs } from './commands.ts'
import { dockerAt } from './engine/docker.ts'
import { messageOf, Problem } from './lib/problem.ts'
import { loadState, type State } from './state.ts'
import type { World } from './world.ts'

/** Exports the logs of the job's cluster, also of one whose start failed. */
export async function logs(world: World): Promise<void> {
  const { host, run, signal } = world
  const options = parseLogs(host.given())
  const state = stateOf(world, options.name)
  if (state === undefined) return
  const { plan } = state
  await host.group(`Export the logs of ${plan.cluster}`, async () => {
    const wanted = options.logsDir === undefined ? plan.logsDir : resolve(options.logsDir)
    const { folder, files } = await exportLogs(dockerAt(plan.engine, run), plan, wanted, host, signal)
    for (const line of [...kubeletFailures(files, plan.nodes), ...whatIsWrong(files)]) host.info(line)
    if (folder === undefined) throw new Problem(`nothing of ${plan.cluster} is on the engine that has any logs`)
    await host.setOutputs({
      'logs-dir': folder,
      'artifact-name': `kind-in-dind-${plan.cluster}-${plan.use.slice(0, 8)}`,
    })
  })
}

/** The use that is meant. A step of GitHub's that runs after any failure also runs where there was no cluster yet. */
function stateOf({ host }: World, name: string | undefined): State | undefined {
  try {
    return loadState(`${host.folder}/${host.chosen(name)}`)
  } catch (error) {
    if (host.name !== 'github' || !(error instanceof Problem)) throw error
    host.info(`There are no logs to export: ${messageOf(error)}`)
    return undefined
  }
}
