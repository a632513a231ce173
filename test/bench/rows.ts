/** The rows of the speed table: what is measured, against what people do today, and how fast it must be. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { names } from '../e2e/lab.ts'
import type { ImageSet } from './images.ts'
import type { Bench } from './place.ts'
import type { Bound } from './statistics.ts'

/** Milliseconds of one round, by row. */
export type Round = Readonly<Record<string, { readonly ours: number; readonly baseline?: number }>>

export interface Row extends Bound {
  readonly title: string
}

export const ROWS: Readonly<Record<string, Row>> = {
  whole: {
    title: 'Two nodes, four images of 220 MB that share a base: until ready and loaded',
    kind: 'ratio',
    must: 0.7,
    aim: 0.55,
  },
  loads: { title: 'The same loads alone, of one `kind load` with all four', kind: 'ratio', must: 0.7, aim: 0.5 },
  'loads-with-base': { title: 'The same loads when the nodes have the base', kind: 'ratio', must: 0.6, aim: 0.4 },
  'loads-again': { title: 'The same loads when the nodes have all', kind: 'ratio', must: 1, aim: 0.7 },
  ready: { title: 'No images: until all nodes and CoreDNS are ready', kind: 'ratio', must: 1, aim: 0.93 },
  post: { title: 'Post, more than `kind delete cluster`', kind: 'more', must: 500, aim: 0 },
  start: { title: 'From process start to the first call of the engine', kind: 'absolute', must: 500, aim: 250 },
}

/** What is measured together, in an order of its own; each gives one or more rows. */
export const GROUPS: Readonly<Record<string, (bench: Bench, round: number) => Promise<Round>>> = {
  whole: measureWhole,
  ready: measureReady,
  start: measureStart,
}

/** How many images most rows have. */
const FOUR = 4
const CONFIG = `kind: Cluster
apiVersion: kind.x-k8s.io/v1alpha4
nodes: [{role: control-plane}, {role: worker}]`
const create = (flags = ''): string =>
  `kind create cluster --name baseline --image ${names.images.node} --kubeconfig /tmp/baseline ${flags} --config - <<'EOF'\n${CONFIG}\nEOF\n`
const REMOVE = 'kind delete cluster --name baseline --kubeconfig /tmp/baseline'

/** Who goes first alternates, so that what one leaves in caches does not always help the same. */
async function alternating<T>(round: number, ours: () => Promise<T>, baseline: () => Promise<T>): Promise<[T, T]> {
  if (round % 2 === 0) {
    const first = await ours()
    return [first, await baseline()]
  }
  const first = await baseline()
  return [await ours(), first]
}

async function ourCluster(bench: Bench, inputs: Readonly<Record<string, string>>): Promise<[number, number]> {
  const use = await bench.start({ workers: '1', ...inputs })
  const post = await bench.job.post(use)
  return [use.took, post.took]
}

async function measureWhole(bench: Bench, round: number): Promise<Round> {
  const images = await bench.four()
  const [ours, baseline] = await alternating(
    round,
    () => ourCluster(bench, { images: images.join(','), 'kubectl-version': 'skip' }),
    async () => {
      const loads = images.map(name => `kind load docker-image --name baseline ${name}`).join('\n')
      const up = await bench.time(`${create('--wait 5m')}${loads}`)
      return [up, await bench.time(REMOVE)] as [number, number]
    },
  )
  return { whole: { ours: ours[0], baseline: baseline[0] }, post: { ours: ours[1], baseline: baseline[1] } }
}

async function measureReady(bench: Bench, round: number): Promise<Round> {
  const inNode = 'docker exec baseline-control-plane kubectl --kubeconfig /etc/kubernetes/admin.conf'
  const wait = `${inNode} wait nodes --all --for condition=Ready --timeout 5m
${inNode} wait deployment/coredns --namespace kube-system --for condition=Available --timeout 5m`
  const [ours, baseline] = await alternating(
    round,
    () => ourCluster(bench, { 'kubectl-version': 'skip' }),
    async () => {
      const up = await bench.time(`${create()}${wait}`)
      return [up, await bench.time(REMOVE)] as [number, number]
    },
  )
  return { ready: { ours: ours[0], baseline: baseline[0] } }
}

/** An engine that is nobody's: what counts is when it is called first. */
async function measureStart(): Promise<Round> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  let called = (): void => {}
  const server = createServer((_, response) => {
    called()
    response.statusCode = 500
    response.end()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  try {
    const started = performance.now()
    const first = new Promise<void>(resolve => {
      called = resolve
    })
    const child = spawn(names.tools.node, [join(import.meta.dirname, '../../dist/main.js')], {
      env: {
        PATH: `${dirname(names.tools.kind)}:${process.env['PATH']}`,
        HOME: folder,
        GITHUB_ACTIONS: 'true',
        RUNNER_TEMP: folder,
        DOCKER_HOST: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
        'INPUT_KIND-VERSION': 'installed',
      },
      stdio: 'ignore',
    })
    const gone = new Promise<void>(resolve => child.once('exit', () => resolve()))
    await Promise.race([first, gone.then(() => Promise.reject(new Error('it ended without calling the engine')))])
    const ours = performance.now() - started
    child.kill('SIGKILL')
    await gone
    return { start: { ours } }
  } finally {
    server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

/** A cluster of three nodes that stays up for all loads. Each load is of a set that was never there. */
export interface Loads {
  /** Makes sets, and waits until the disk is at rest. */
  prepare(counts: readonly number[]): Promise<readonly ImageSet[]>
  /** Brings images into nodes, unmeasured. */
  bring(images: readonly string[], nodes: number): Promise<void>
  /** Loads with both ways. @param nodes into how many of the nodes */
  compare(
    round: number,
    ours: readonly string[],
    baseline: readonly string[],
    nodes: number,
  ): Promise<{ ours: number; baseline: number }>
  /** Runs scripts with the first node's name. @returns milliseconds */
  time(script: (node: string) => string): Promise<number>
  /** Takes sets out of the nodes and the engine. */
  clear(sets: readonly ImageSet[]): Promise<void>
}

/** Starts the cluster. Post removes it with the place. */
export async function startLoads(bench: Bench): Promise<Loads> {
  const { outputs } = await bench.start({ workers: '2' })
  const cluster = outputs['name'] ?? ''
  const nodes = ['worker', 'worker2', 'control-plane'].map(role => `${cluster}-${role}`)
  const kindLoad = (images: readonly string[], count: number): string =>
    `kind load docker-image --name ${cluster} --nodes ${nodes.slice(0, count).join(',')} ${images.join(' ')}`
  const ourLoad = (images: readonly string[], count: number): string =>
    `kind-in-dind load --nodes ${nodes.slice(0, count).join(',')} ${images.join(' ')}`
  const inEach = (script: string): string => nodes.map(node => `docker exec ${node} sh -c '${script}'`).join('\n')
  await bench.time(inEach('ctr -n k8s.io images ls -q >/tmp/bench-before'))
  return {
    prepare: async counts => {
      const sets = await bench.sets(counts)
      await bench.settle()
      return sets
    },
    bring: async (images, count) => void (await bench.time(kindLoad(images, count))),
    compare: (round, ours, baseline, count) =>
      alternating(
        round,
        () => bench.time(ourLoad(ours, count)),
        () => bench.time(kindLoad(baseline, count)),
      ).then(([oursTook, baselineTook]) => ({ ours: oursTook, baseline: baselineTook })),
    time: script => bench.time(script(nodes[0] ?? '')),
    clear: async sets => {
      // Also the names that containerd and kind load give images beside their own, since any of them keeps layers.
      const rest =
        'ctr -n k8s.io images ls -q | grep -vxFf /tmp/bench-before | xargs -r ctr -n k8s.io images rm --sync >/dev/null'
      const all = sets.flatMap(({ base, images }) => [...images, base])
      await bench.time(`${inEach(rest)}\ndocker image rm ${all.join(' ')} >/dev/null`)
    },
  }
}

/** The three rows of loads. */
export async function measureLoads(loads: Loads, round: number): Promise<Round> {
  const sets = await loads.prepare([FOUR, FOUR, FOUR, FOUR])
  const [ours, baseline, oursOnBase, baselineOnBase] = sets as [ImageSet, ImageSet, ImageSet, ImageSet]
  const alone = await loads.compare(round, ours.images, baseline.images, 2)
  const again = await loads.compare(round, ours.images, baseline.images, 2)
  for (const { base } of [oursOnBase, baselineOnBase]) await loads.bring([base], 2)
  const withBase = await loads.compare(round, oursOnBase.images, baselineOnBase.images, 2)
  await loads.clear(sets)
  return { loads: alone, 'loads-with-base': withBase, 'loads-again': again }
}

/** How the cost of a load grows: with nodes, and with images. */
export const GROWTH: readonly { readonly nodes: number; readonly images: number }[] = [
  ...[1, 2, 3].map(nodes => ({ nodes, images: 4 })),
  ...[1, 2, 8].map(images => ({ nodes: 2, images })),
]

/** One comparison for each point. */
export async function measureGrowth(
  loads: Loads,
  round: number,
): Promise<readonly { readonly ours: number; readonly baseline: number }[]> {
  const sets = await loads.prepare(GROWTH.flatMap(({ images }) => [images, images]))
  const measured: { ours: number; baseline: number }[] = []
  for (const [index, { nodes }] of GROWTH.entries()) {
    const [ours, baseline] = sets.slice(2 * index) as [ImageSet, ImageSet]
    measured.push(await loads.compare(round, ours.images, baseline.images, nodes))
  }
  await loads.clear(sets)
  return measured
}

/** Where the time of a plain load into one node goes: each part does what the one before does, and something more. */
export const PARTS: readonly { readonly title: string; readonly script: (images: string, node: string) => string }[] = [
  {
    title: 'the engine reads the images and sends them to the step',
    script: images => `docker save ${images} >/dev/null`,
  },
  {
    title: 'the step sends them on, into the node',
    script: (images, node) => `docker save ${images} | docker exec --interactive ${node} sh -c 'cat >/dev/null'`,
  },
  {
    title: 'containerd hashes and stores them',
    script: (images, node) =>
      `docker save ${images} | docker exec --interactive ${node} ctr -n k8s.io images import --no-unpack - >/dev/null`,
  },
  {
    title: 'containerd unpacks them',
    script: (images, node) =>
      `docker save ${images} | docker exec --interactive ${node} ctr -n k8s.io images import - >/dev/null`,
  },
]

/** Milliseconds of each part up to and with itself. */
export async function measureParts(loads: Loads): Promise<readonly number[]> {
  const sets = await loads.prepare(PARTS.map(() => FOUR))
  const sums: number[] = []
  for (const [index, { script }] of PARTS.entries()) {
    const { images } = sets[index] as ImageSet
    sums.push(await loads.time(node => script(images.join(' '), node)))
  }
  await loads.clear(sets)
  return sums
}
