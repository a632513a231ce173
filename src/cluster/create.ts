import { clusterContainers, createNetwork, createRecord, type Docker, defaultMtu, engineEnv } from '../engine/docker.ts'
import type { KindConfig } from '../kind-config.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { CommandFailed, lastLines, type Runner } from '../lib/run.ts'
import { LABEL, type Plan } from '../plan.ts'
import { createCluster, kindEnv } from './kind.ts'
import { findRecord } from './remove.ts'

/**
 * Makes the cluster's record. Two jobs that want the same name at the same time both come here: the engine makes the
 * volume once, with the labels of whoever was first.
 */
export async function makeRecord(docker: Docker, plan: Plan): Promise<void> {
  await docker.run(createRecord(plan))
  const labels = await findRecord(docker, plan.record)
  if (labels?.[LABEL.use] !== plan.use) throw taken(plan, labels ?? {})
}

/**
 * Sees that no cluster on the engine has the plan's name.
 *
 * @throws Problem that says whose it is
 */
export async function checkName(docker: Docker, plan: Plan): Promise<void> {
  const [labels, containers] = await Promise.all([
    findRecord(docker, plan.record),
    docker.run(clusterContainers(plan.cluster)),
  ])
  if (labels !== undefined || containers.stdout.trim() !== '') throw taken(plan, labels ?? {})
}

/** The refusal of a name that a live cluster has. */
function taken(plan: Plan, labels: Readonly<Record<string, string>>): Problem {
  const whose =
    labels[LABEL.job] === undefined
      ? 'not one of kind-in-dind'
      : `of the job ${labels[LABEL.job]} on ${labels[LABEL.owner]}`
  return new Problem(
    `name: the engine has a cluster ${plan.cluster} already (${whose}); choose another name, or remove that one first`,
  )
}

/** Makes the cluster's own network, with the MTU of the engine's default network: a smaller one is there for a reason. */
export async function makeNetwork(docker: Docker, plan: Plan): Promise<void> {
  const { stdout } = await docker.try(defaultMtu)
  const mtu = /^\d+$/.test(stdout.trim()) ? stdout.trim() : undefined
  await docker.run(createNetwork(plan, mtu))
}

/**
 * Creates the nodes and runs kubeadm in them. They need not be ready when this returns, but have joined.
 *
 * @param kind kind's path
 * @throws Problem with kind's last lines
 */
export async function makeNodes(
  runner: Runner,
  kind: string,
  plan: Plan,
  config: KindConfig,
  log: { readonly info: (line: string) => void; readonly debug: (line: string) => void },
): Promise<void> {
  const started = performance.now()
  try {
    await runner.run(createCluster(kind, plan), {
      env: { ...engineEnv(plan.engine), ...kindEnv(plan) },
      input: JSON.stringify(config),
      onLine: line => {
        log.debug(line)
        const done = milestone(line)
        if (done !== undefined) log.info(`${done}: done after ${formatDuration(performance.now() - started)}`)
      },
    })
  } catch (error) {
    if (!(error instanceof CommandFailed) || error.endedBy) throw error
    throw new Problem(`kind could not create the cluster: ${lastLines(error.result.stderr.trim(), 25)}`)
  }
}

/** What kind has done, from its line ` ✓ Starting control-plane 🕹️`; undefined for other lines. */
export function milestone(line: string): string | undefined {
  return /^ ✓ ([\w -]+\w)/.exec(line)?.[1]
}
