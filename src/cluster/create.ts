import { createHash } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { containerNames, limitContainers } from '../engine/containers.ts'
import { type Docker, engineEnv } from '../engine/docker.ts'
import { createNetwork, defaultMtu, networkExists } from '../engine/networks.ts'
import { clusterContainers, createRecord, marksOn, removeVolumes } from '../engine/records.ts'
import type { KindConfig } from '../kind-config.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { CommandFailed, type Runner, whatItSaid } from '../lib/run.ts'
import { scrubber } from '../lib/scrub.ts'
import type { Timeline } from '../lib/timeline.ts'
import { LABEL, type Plan } from '../plan.ts'
import { hopeless } from './hopeless.ts'
import { createCluster, kindEnv } from './kind.ts'
import { plannedContainers } from './late-nodes.ts'
import { findRecord } from './remove.ts'
import { kindFailure } from './telling-lines.ts'

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
 * Sees that no cluster on the engine has the plan's name, and nothing else a name that its containers will have.
 *
 * @throws Problem that says whose it is
 */
export async function checkName(docker: Docker, plan: Plan): Promise<void> {
  const [labels, containers, names] = await Promise.all([
    findRecord(docker, plan.record),
    docker.run(clusterContainers(plan.cluster)),
    docker.run(containerNames),
  ])
  if (labels !== undefined || containers.stdout.trim() !== '') throw taken(plan, labels ?? {})
  const held = plannedContainers(plan).filter(name => names.stdout.split('\n').includes(name))
  if (held.length > 0) {
    throw new Problem(
      `name: the engine has the container ${held.join(' and ')} already, which is not of a cluster; choose another name than ${plan.cluster}, or remove that container first`,
    )
  }
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

/**
 * Makes the cluster's network, with the MTU of the engine's default network: a smaller one is there for a reason. One that
 * the user names and the engine has is taken as it is; two jobs may want to make the same one at the same time, and another
 * one may be removing it. The plan's record is there, so that whoever leaves the network from now on lets it stay.
 *
 * @param limit how long one who leaves may take, in milliseconds
 */
export async function makeNetwork(docker: Docker, plan: Plan, ipFamily: unknown, limit = LEAVE_LIMIT): Promise<void> {
  if (plan.networkIsTheUsers) await untilNobodyLeaves(docker, plan.network, limit)
  if (plan.networkIsTheUsers && (await docker.try(networkExists(plan.network))).code === 0) return
  const { stdout } = await docker.try(defaultMtu)
  const mtu = /^\d+$/.test(stdout.trim()) ? stdout.trim() : undefined
  const ipv6 = ipFamily === 'ipv6' || ipFamily === 'dual' ? ipv6Subnet(plan.cluster) : undefined
  const made = await docker.try(createNetwork(plan, { mtu, ipv6 }))
  if (made.code === 0 || (plan.networkIsTheUsers && /already exists/i.test(made.stderr))) return
  throw new Problem(`network: the engine cannot make the network ${plan.network}: ${whatItSaid(made, 3)}`)
}

/** How long another job's removal of a network is waited for, in milliseconds: it is a command or two. */
const LEAVE_LIMIT = 20_000

/** How long to leave the engine alone meanwhile, in milliseconds. */
const PAUSE = 100

/** Waits until no post is about to remove a network. A mark that stays is of one that was killed, and goes. */
async function untilNobodyLeaves(docker: Docker, network: string, limit: number): Promise<void> {
  const deadline = performance.now() + limit
  for (;;) {
    const marks = (await docker.run(marksOn(network))).stdout.split('\n').filter(line => line !== '')
    if (marks.length === 0) return
    if (performance.now() > deadline) {
      await docker.run(removeVolumes(marks))
      return
    }
    await sleep(PAUSE)
  }
}

/**
 * A subnet of the cluster's own: a unique local address (RFC 4193) from a hash of its name, since engines before Docker 27
 * pick none by themselves.
 */
export function ipv6Subnet(cluster: string): string {
  const hash = createHash('sha256').update(cluster).digest('hex')
  return `fd${hash.slice(0, 2)}:${hash.slice(2, 6)}:${hash.slice(6, 10)}:${hash.slice(10, 14)}::/64`
}

/**
 * Creates the nodes and runs kubeadm in them. They need not be ready when this returns, but have joined.
 *
 * @param kind kind's path
 * @throws Problem with kind's last lines, or why it was given up
 */
export async function makeNodes(
  runner: Runner,
  docker: Docker,
  kind: string,
  plan: Plan,
  config: KindConfig,
  log: {
    readonly info: (line: string) => void
    readonly debug: (line: string) => void
    readonly timeline: Timeline
  },
): Promise<void> {
  const started = performance.now()
  /** Ends the stage that kind is in. */
  let end: (how?: 'failed') => void = () => {}
  const watch = new AbortController()
  const giveUp = new AbortController()
  void hopeless(docker, plan.nodes, watch.signal).then(why => why !== undefined && giveUp.abort(why))
  try {
    await runner.run(createCluster(kind, plan), {
      env: { ...engineEnv(plan.engine), ...kindEnv(plan) },
      input: JSON.stringify(config),
      timeout: LIMIT,
      signal: giveUp.signal,
      onLine: line => {
        log.debug(scrub(line))
        const { sign, name } = milestone(line) ?? {}
        if (sign === '•' && name !== undefined) end = log.timeline.begin(name)
        if (sign === '✗') end('failed')
        if (sign !== '✓') return
        end()
        log.info(`${name}: done after ${formatDuration(performance.now() - started)}`)
      },
    })
  } catch (error) {
    end('failed')
    if (!(error instanceof CommandFailed)) throw error
    if (giveUp.signal.aborted) throw new Problem(`kind could not create the cluster: ${giveUp.signal.reason}`)
    if (error.endedBy === 'abort') throw error
    if (error.endedBy === 'timeout') {
      throw new Problem(
        `kind did not create the cluster within ${formatDuration(LIMIT)}: ${kindFailure(error.result.stderr)}`,
      )
    }
    throw new Problem(`kind could not create the cluster: ${kindFailure(error.result.stderr)}`)
  } finally {
    watch.abort()
  }
}

const scrub = scrubber([])

/** How long kind may take, in milliseconds; kubeadm's own waits end after four minutes each. */
const LIMIT = 15 * 60_000

/**
 * What kind begins, has done or failed at, from its lines ` • Starting control-plane 🕹️  ...` and ` ✓ Starting control-plane 🕹️`
 * (kind's pkg/internal/cli/status.go); undefined for other lines.
 */
export function milestone(line: string): { readonly sign: '•' | '✓' | '✗'; readonly name: string } | undefined {
  const [, sign, name] = /^ ([•✓✗]) ([\w -]+\w)/.exec(line) ?? []
  return sign === undefined || name === undefined ? undefined : { sign: sign as '•' | '✓' | '✗', name }
}

/** The ids of the cluster's nodes: by them post knows what is ours, also where somebody has removed the record. */
export async function nodeIds(docker: Docker, plan: Plan): Promise<readonly string[]> {
  return (await docker.run(clusterContainers(plan.cluster))).stdout.split('\n').filter(id => id !== '')
}

/** Holds the nodes' containers to their limits; kind cannot set any. Does nothing where there are none. */
export async function limitNodes(
  docker: Docker,
  plan: Plan,
  limits: { readonly cpus?: number; readonly memory?: number },
): Promise<void> {
  if (Object.keys(limits).length > 0) await docker.run(limitContainers(plan.nodes, limits))
}
