/** When the cluster is ready: watched, not polled, with one deadline. */
import {
  CoreV1Api,
  type KubeConfig,
  type V1Deployment,
  type V1Node,
  type V1ServiceAccount,
  VersionApi,
} from '@kubernetes/client-node'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Timeline } from '../lib/timeline.ts'
import { ask } from './api.ts'
import { isNotReady, podReason } from './pods.ts'
import { type Condition, watchUntil } from './watch.ts'

/** One thing that must be, with words for it. */
interface Readiness extends Condition {
  readonly what: string
  readonly verb: 'is' | 'are'
}

const isReady = (node: V1Node): boolean =>
  node.status?.conditions?.some(condition => condition.type === 'Ready' && condition.status === 'True') ?? false

function conditions(nodes: readonly string[]): Readiness[] {
  return [
    {
      what: nodes.length === 1 ? 'The node' : `${nodes.length} nodes`,
      verb: nodes.length === 1 ? 'is' : 'are',
      path: '/api/v1/nodes',
      query: {},
      met: seen => nodes.every(name => seen.has(name) && isReady(seen.get(name) as V1Node)),
    },
    {
      what: 'CoreDNS',
      verb: 'is',
      path: '/apis/apps/v1/namespaces/kube-system/deployments',
      query: { fieldSelector: 'metadata.name=coredns' },
      met: seen => {
        const coredns = seen.get('coredns') as V1Deployment | undefined
        return coredns !== undefined && (coredns.status?.availableReplicas ?? 0) >= (coredns.spec?.replicas ?? 1)
      },
    },
    {
      what: 'The default service account',
      verb: 'is',
      path: '/api/v1/namespaces/default/serviceaccounts',
      query: { fieldSelector: 'metadata.name=default' },
      met: seen => (seen.get('default') as V1ServiceAccount | undefined) !== undefined,
    },
  ]
}

/**
 * Waits until every node, CoreDNS and the default service account are ready.
 *
 * @param nodes the nodes' names
 * @param limit milliseconds, for all of it
 * @throws Problem at the limit, which says which node and pod were not ready and what their last events were
 */
export async function waitUntilReady(
  kubeconfig: KubeConfig,
  nodes: readonly string[],
  limit: number,
  world: {
    readonly signal: AbortSignal
    readonly timeline: Timeline
    readonly info: (message: string) => void
    readonly debug: (message: string) => void
  },
): Promise<void> {
  const started = performance.now()
  const deadline = AbortSignal.timeout(limit)
  const signal = AbortSignal.any([world.signal, deadline])
  try {
    await Promise.all(
      conditions(nodes).map(async condition => {
        await world.timeline.span(`${condition.what} ready`, () =>
          watchUntil(kubeconfig, condition, signal, world.debug),
        )
        world.info(`${condition.what} ${condition.verb} ready after ${formatDuration(performance.now() - started)}`)
      }),
    )
  } catch (error) {
    if (world.signal.aborted || !deadline.aborted) throw error
    const held = await whatHeldItUp(kubeconfig, nodes).catch(why => [
      `the API server does not say why: ${messageOf(why)}`,
    ])
    throw new Problem(
      `the cluster was not ready within ${formatDuration(limit)} (wait):\n${held.map(line => `  ${line}`).join('\n')}`,
    )
  }
}

/** How long the API server may take to say what is not ready, in milliseconds: the time that there was is over. */
const WHY_LIMIT = 10_000

/** A line for each node and system pod that is not ready, with the reason the cluster gives. */
async function whatHeldItUp(kubeconfig: KubeConfig, nodes: readonly string[]): Promise<string[]> {
  const [seen, pods, events] = await ask(
    kubeconfig,
    CoreV1Api,
    'what is not ready',
    api =>
      Promise.all([
        api.listNode(),
        api.listNamespacedPod({ namespace: 'kube-system' }),
        api.listNamespacedEvent({ namespace: 'kube-system' }),
      ]),
    WHY_LIMIT,
  )
  const lines = nodes.flatMap(name => {
    const node = seen.items.find(item => item.metadata?.name === name)
    if (!node) return [`node ${name}: has not registered`]
    if (isReady(node)) return []
    const ready = node.status?.conditions?.find(condition => condition.type === 'Ready')
    return [`node ${name}: ${ready?.message ?? 'has not reported yet'}`]
  })
  return [
    ...lines,
    ...pods.items.filter(isNotReady).map(pod => `pod ${pod.metadata?.name}: ${podReason(pod, events.items)}`),
  ]
}

/**
 * Deletes kubeadm's bootstrap token, which is the same on every kind cluster and would let anyone who reaches the API
 * server join a node. Every node has joined by then. (kind's pkg/cluster/internal/kubeadm/const.go.)
 */
export async function deleteBootstrapToken(kubeconfig: KubeConfig): Promise<void> {
  await ask(kubeconfig, CoreV1Api, "to delete kubeadm's bootstrap token", api =>
    api.deleteNamespacedSecret({ name: 'bootstrap-token-abcdef', namespace: 'kube-system' }),
  ).catch((error: { code?: number }) => {
    if (error.code !== 404) throw error
  })
}

/** The Kubernetes version that the API server says it has, such as v1.34.0. */
export async function kubernetesVersion(kubeconfig: KubeConfig): Promise<string> {
  return (await ask(kubeconfig, VersionApi, 'which version it has', api => api.getCode())).gitVersion
}
