/** A Deployment that somebody else makes: when its pods are ready, and what keeps one of them from it. */
import {
  AppsV1Api,
  CoreV1Api,
  type KubeConfig,
  PatchStrategy,
  setHeaderOptions,
  type V1Deployment,
  type V1Node,
  type V1Pod,
} from '@kubernetes/client-node'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { ask } from './api.ts'
import { beginPods, type Workload } from './begin-pods.ts'
import { isNotReady, isStuck, podTrouble } from './pods.ts'
import { watchUntil } from './watch.ts'

export interface Place {
  readonly namespace: string
  /** The Deployment's name; its pods carry it as their label `app`. */
  readonly name: string
}

/** Makes a namespace where there is none of that name. */
export async function makeNamespace(kubeconfig: KubeConfig, name: string): Promise<void> {
  await ask(kubeconfig, CoreV1Api, `to make the namespace ${name}`, api =>
    api.createNamespace({ body: { metadata: { name } } }),
  ).catch((error: { code?: number }) => {
    if (error.code !== 409) throw error
  })
}

/**
 * Waits until every node takes pods. Before that the scheduler calls a pod unschedulable for a node that has only just joined,
 * and since Kubernetes 1.34 without saying so.
 *
 * @param nodes the nodes' names
 */
export async function waitUntilNodesTakePods(
  kubeconfig: KubeConfig,
  nodes: readonly string[],
  world: { readonly signal: AbortSignal; readonly debug: (message: string) => void },
): Promise<void> {
  const met = (seen: ReadonlyMap<string, unknown>): boolean =>
    nodes.every(name => takesPods(seen.get(name) as V1Node | undefined))
  await watchUntil(kubeconfig, { path: '/api/v1/nodes', query: {}, met }, world.signal, world.debug)
}

/** Kubernetes taints a node that joins until it has seen it ready, a moment after that. */
function takesPods(node: V1Node | undefined): boolean {
  const isReady = node?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false
  return isReady && !node?.spec?.taints?.some(({ key }) => key === 'node.kubernetes.io/not-ready')
}

/**
 * Lets the pods begin of a Deployment or a StatefulSet that was made with none, see `beginPods`. Where there is neither, or it has
 * pods, nothing is done.
 */
export async function letPodsBegin(kubeconfig: KubeConfig, place: Place, replicas: number): Promise<void> {
  const jsonPatch = setHeaderOptions('Content-Type', PatchStrategy.JsonPatch)
  const begin = async (read: Promise<Workload>, patch: (body: object) => Promise<unknown>): Promise<void> => {
    const found = await read.catch((error: { code?: number }) => {
      if (error.code !== 404) throw error
    })
    if (found?.spec?.replicas === 0) await patch(beginPods(found, replicas))
  }
  await ask(kubeconfig, AppsV1Api, `to let the pods of ${place.name} begin`, api =>
    Promise.all([
      begin(api.readNamespacedDeployment(place), body => api.patchNamespacedDeployment({ ...place, body }, jsonPatch)),
      begin(api.readNamespacedStatefulSet(place), body =>
        api.patchNamespacedStatefulSet({ ...place, body }, jsonPatch),
      ),
    ]),
  )
}

/**
 * Waits until all pods of a Deployment are ready, on nodes that take pods. It need not be there yet.
 *
 * @param option names what was asked for in what goes wrong
 * @param limit milliseconds
 * @throws Problem with the pods that are not ready: at the limit, and at once where one will not start by itself
 */
export async function waitUntilPodsReady(
  kubeconfig: KubeConfig,
  place: Place,
  option: string,
  limit: number,
  world: { readonly signal: AbortSignal; readonly debug: (message: string) => void },
): Promise<void> {
  const { namespace, name } = place
  const deadline = AbortSignal.timeout(limit)
  const settled = new AbortController()
  const signal = AbortSignal.any([world.signal, deadline, settled.signal])
  const watch = (path: string, query: Record<string, string>, met: (seen: ReadonlyMap<string, unknown>) => boolean) =>
    watchUntil(kubeconfig, { path, query, met }, signal, world.debug)
  const held = async (how: string): Promise<Problem> =>
    new Problem([`${option}: ${how}:`, ...(await podsNotReady(kubeconfig, place)).map(line => `  ${line}`)].join('\n'))

  let refused: string | undefined
  const ready = watch(
    `/apis/apps/v1/namespaces/${namespace}/deployments`,
    { fieldSelector: `metadata.name=${name}` },
    seen => {
      const deployment = seen.get(name) as V1Deployment | undefined
      refused = refusalOf(deployment)
      return refused !== undefined || isReady(deployment)
    },
  )
  const stuck = watch(`/api/v1/namespaces/${namespace}/pods`, { labelSelector: `app=${name}` }, seen =>
    [...seen.values()].some(pod => isStuck(pod as V1Pod)),
  ).then(async () => {
    throw await held('a pod of it does not start')
  })
  try {
    await Promise.race([ready, stuck])
  } catch (error) {
    if (world.signal.aborted || !deadline.aborted || error instanceof Problem) throw error
    throw await held(`its pods were not ready within ${formatDuration(limit)} (wait)`)
  } finally {
    settled.abort()
  }
  if (refused !== undefined) throw new Problem(`${option}: the cluster makes no pods for it: ${refused}`)
}

function isReady(deployment: V1Deployment | undefined): boolean {
  return deployment !== undefined && (deployment.status?.readyReplicas ?? 0) >= (deployment.spec?.replicas ?? 1)
}

/** Why the cluster does not even make the pods, such as a service account that is not there. */
function refusalOf(deployment: V1Deployment | undefined): string | undefined {
  const failure = deployment?.status?.conditions?.find(
    ({ type, status }) => type === 'ReplicaFailure' && status === 'True',
  )
  // In a new namespace the default one comes a moment later.
  return /service account \S+\/default\b/.test(failure?.message ?? '') ? undefined : failure?.message
}

/** How long the API server may take to say what is not ready, in milliseconds: the time that there was is over. */
const WHY_LIMIT = 10_000

/** A line for each pod of a Deployment that is not ready, with the reason the cluster gives. */
export async function podsNotReady(kubeconfig: KubeConfig, { namespace, name }: Place): Promise<string[]> {
  const whatIsNot = async (api: CoreV1Api): Promise<string[]> => {
    const [pods, events] = await Promise.all([
      api.listNamespacedPod({ namespace, labelSelector: `app=${name}` }),
      api.listNamespacedEvent({ namespace }),
    ])
    const waiting = pods.items.filter(isNotReady)
    return await Promise.all(
      waiting.map(async pod => {
        const said = await lastWords(api, pod)
        const where = pod.spec?.nodeName === undefined ? '' : ` on ${pod.spec.nodeName}`
        return `pod ${pod.metadata?.name}${where}: ${podTrouble(pod, events.items)}${said === '' ? '' : `; its log ends: ${said}`}`
      }),
    )
  }
  try {
    return await ask(kubeconfig, CoreV1Api, 'what is not ready', whatIsNot, WHY_LIMIT)
  } catch (error) {
    return [`the API server does not say why: ${messageOf(error)}`]
  }
}

/** What a container that ended had said last; empty where none did. */
async function lastWords(api: CoreV1Api, pod: V1Pod): Promise<string> {
  const crashed = pod.status?.containerStatuses?.find(
    ({ lastState, state }) => lastState?.terminated ?? state?.terminated,
  )
  if (crashed === undefined) return ''
  const previous = crashed.lastState?.terminated !== undefined
  return await api
    .readNamespacedPodLog({
      ...{ name: pod.metadata?.name ?? '', namespace: pod.metadata?.namespace ?? '', container: crashed.name },
      ...{ tailLines: 5, previous },
    })
    .then(text => text.trim())
    .catch(() => '')
}
