/** What a job that failed gets to see of its cluster before that goes. */
import { exportLogs } from '../cluster/export-logs.ts'
import { kubeletFailures, whatIsWrong } from '../cluster/telling-lines.ts'
import { dockerAt } from '../engine/docker.ts'
import type { State } from '../state.ts'
import type { World } from '../world.ts'

/**
 * Exports the logs where the job failed, or where they are always wanted, and shows the lines that say what is wrong. Not
 * in a cancel: what time there is then is the removal's. The logs of a start that failed were exported there.
 */
export async function lookBack({ host, run, signal }: World, { plan, stage }: State): Promise<void> {
  const status = host.jobStatus()
  const wanted = plan.logs === 'always' || (plan.logs === 'on-failure' && status === 'failure')
  if (!wanted || status === 'cancelled' || stage !== 'ready') return
  // Steps that upload files were before this one on GitHub, and the use's own folder goes with the cluster.
  const lost = host.name === 'github' && plan.logsDir.startsWith(`${plan.folder}/`)
  await host.group(`Look at the cluster ${plan.cluster} once more`, async () => {
    const docker = dockerAt(plan.engine, run)
    const { files } = await exportLogs(docker, plan, lost ? undefined : plan.logsDir, host, signal)
    const lines = [...kubeletFailures(files, plan.nodes), ...whatIsWrong(files)]
    for (const line of lines) host.info(line)
    if (lines.length === 0) host.info('All nodes and pods are ready, and there were no warnings.')
    if (lost) {
      host.info(
        `The whole logs are exported by a step with uses: ${action(host.env)} and if: failure(), before the one that uploads them`,
      )
    }
  })
}

/** The sub-action `logs` as this job would name it; a job that has the action in its own repository names no other. */
function action(env: World['host']['env']): string {
  const repository = env['GITHUB_ACTION_REPOSITORY']
  return repository ? `${repository}/logs@${env['GITHUB_ACTION_REF'] || 'v1'}` : './logs'
}
