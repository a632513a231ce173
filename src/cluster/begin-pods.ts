/** The pods of a builder: what they are made of once they may begin. Pure. */
import type { V1PodSpec, V1Toleration } from '@kubernetes/client-node'

/** A workload whose pods are all alike: a Deployment's or a StatefulSet's. */
export interface Workload {
  readonly spec?: { readonly replicas?: number; readonly template: { readonly spec?: V1PodSpec } }
}

/** One step of a JSON patch, RFC 6902; `add` also replaces. */
export type PatchStep =
  | { readonly op: 'add'; readonly path: string; readonly value: unknown }
  | { readonly op: 'move'; readonly from: string; readonly path: string }

/** How long pods stay with a node that the cluster has lost, in seconds; Kubernetes' own five minutes are a whole job. */
const STAY = 10

const LOST = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

/** How long the first container may take to answer, in seconds: what the liveness probe of buildx' driver gives it. */
const START = 95

/**
 * Lets the pods of a workload begin that was made with none, and changes before what makes them wait.
 *
 * The driver's readiness probe looks after five seconds first. And a kubelet that is younger than a probe's period waits a random
 * part of it before the first look (run in pkg/kubelet/prober/worker.go), so on a cluster of this job's own these 30 seconds are half
 * a minute at the worst. As a startup probe the same command is asked each second, until it succeeds once. Later the driver's
 * liveness probe, which is the same command too, finds what the readiness probe would have.
 *
 * And pods on a node that is lost are replaced before the job ends.
 */
export function beginPods({ spec }: Workload, replicas: number): PatchStep[] {
  const pod = spec?.template.spec
  const [container] = pod?.containers ?? []
  const path = '/spec/template/spec'
  const probe = `${path}/containers/0/startupProbe`
  const quick = container?.readinessProbe !== undefined && container.startupProbe === undefined
  const set = (path: string, value: unknown): PatchStep => ({ op: 'add', path, value })
  return [
    ...(quick
      ? [
          { op: 'move', from: `${path}/containers/0/readinessProbe`, path: probe } as const,
          set(`${probe}/initialDelaySeconds`, 0),
          set(`${probe}/periodSeconds`, 1),
          set(`${probe}/failureThreshold`, START),
        ]
      : []),
    set(`${path}/tolerations`, withTolerations(pod?.tolerations ?? [])),
    set('/spec/replicas', replicas),
  ]
}

/** A toleration that says something of a lost node already is left alone; one without a key is for every taint. */
function withTolerations(given: readonly V1Toleration[]): V1Toleration[] {
  const missing = LOST.filter(lost => !given.some(({ key }) => key === undefined || key === '' || key === lost))
  return [...given, ...missing.map(key => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: STAY }))]
}
