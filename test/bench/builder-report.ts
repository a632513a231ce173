/** BUILDER.md, from what was measured. Pure. */
import { median, type Samples } from './statistics.ts'

/** Milliseconds, for one number of replicas. */
export interface ReplicaResults {
  readonly count: number
  /** Until the builder is ready, once its image is in the nodes: with the option, and by the driver alone. */
  readonly ready: { readonly ours: number; readonly driver: number }
  /** Four contexts at once: on the builder, and by the engine itself. */
  readonly builds: { readonly ours: Samples; readonly docker: Samples }
  /** How many pods had at least one of the four. */
  readonly pods: number
}

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`

/** @param machine a sentence that says what it was measured on and with */
export function builderMarkdown(replicas: readonly ReplicaResults[], machine: string): string {
  const rows = replicas.map(({ count, ready, builds, pods }) => [
    `${count}`,
    seconds(ready.ours),
    seconds(ready.driver),
    seconds(median(builds.ours)),
    seconds(median(builds.docker)),
    (median(builds.ours) / median(builds.docker)).toFixed(2),
    `${pods}`,
  ])
  const head = ['replicas', 'ready', 'ready, driver alone', 'four builds', 'by the engine', 'ratio', 'pods that built']
  const table = [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
  return `# How fast a builder is

Written by \`npm run bench builder\`. A step beside a docker:dind sidecar, a cluster with two workers, BuildKit's image in the nodes.

${machine}

${table}

- ready: until all pods are, on a new cluster. The driver alone is \`docker buildx create --driver kubernetes --bootstrap\`, whose probe
  looks after five seconds first, and which a kubelet that has only just started puts off by up to half a minute.
- four builds: four contexts at once, each a small image of two stages, the first of which works for a second or two of one CPU.
  Medians of ${replicas[0]?.builds.ours.length ?? 0}; "by the engine" is buildx' default driver, in the same engine, alternating.
- pods that built: each context's path goes to one pod, by a hash that need not be even.

Replicas are no more CPUs: where all nodes are on one machine they make a build that uses all of it no faster. What they give is a cache and
a queue for each, and more memory and disks where the engine has them.
`
}
