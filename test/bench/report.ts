/** RESULTS.md and its picture, from what was measured. Pure. */
import { GROWTH, PARTS, ROWS } from './rows.ts'
import { median, result, type Samples, verdict } from './statistics.ts'

/** What is kept of the runs: a row may be measured again alone. */
export interface Results {
  /** By row; `measured` is a sentence of what it was measured on and with, as `machine`. */
  readonly rows: Readonly<
    Record<string, { readonly measured: string; readonly ours: Samples; readonly baseline: Samples }>
  >
  readonly growth: readonly { readonly ours: Samples; readonly baseline: Samples }[]
  /** Milliseconds, a list for each round. */
  readonly parts: readonly (readonly number[])[]
  /** What all else was measured on and with: the machine, the day, and the versions of what took part. */
  readonly machine: string
}

const PARTS_SHOWN = `A plain load of the four images into one node, without anything of ours: what each part adds.

![where the time of a plain load goes](where-the-time-goes.svg)

`

const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
const spread = (samples: Samples): string =>
  `${(Math.min(...samples) / 1000).toFixed(1)}–${seconds(Math.max(...samples))}`

/** The rows that are over their must, a sentence each. */
export function failures(results: Results): string[] {
  return measured(results).flatMap(({ row, value }) =>
    verdict(row, value) === 'over'
      ? [`${row.title}: ${show(row.kind, value)}, and it must be ${show(row.kind, row.must)}`]
      : [],
  )
}

export function markdown(results: Results): string {
  const rows = measured(results).map(({ row, value, ours, baseline }) => [
    row.title,
    `${seconds(median(ours))} (${spread(ours)})`,
    baseline.length === 0 ? '' : `${seconds(median(baseline))} (${spread(baseline)})`,
    `**${show(row.kind, value)}**`,
    show(row.kind, row.must),
    `${show(row.kind, row.aim)}${verdict(row, value) === 'aim' ? ' ✓' : ''}`,
  ])
  const growth = results.growth.map(({ ours, baseline }, index) => {
    const point = GROWTH[index] ?? { nodes: 0, images: 0 }
    return [
      `${point.nodes}`,
      `${point.images}`,
      seconds(median(ours)),
      seconds(median(baseline)),
      (median(ours) / median(baseline)).toFixed(2),
    ]
  })
  const others = measured(results).filter(row => row.measured !== results.machine)
  const machines = [results.machine, ...others.map(({ row, measured: on }) => `${row.title}: ${on}`)]
  return `# How fast it is

Written by \`npm run bench\`. Medians with the least and the most; ours and the baseline alternate within one run, so compare within a
row only. The baseline is what people do today: \`kind create cluster --wait 5m\`, one \`kind load docker-image\` for each image,
\`kind delete cluster\`. The place is a step in a container beside a docker:dind sidecar over TLS.

${machines.join('\n\n')}

${table(['what', 'ours', 'baseline', 'result', 'must', 'aim'], rows)}

Rounds: ${[...new Set(measured(results).map(({ ours }) => ours.length))].sort((a, b) => a - b).join(', ')}.

${growth.length === 0 ? '' : `## How a load grows\n\n${table(['nodes', 'images', 'ours', 'one `kind load`', 'ratio'], growth)}\n\n`}## Where the time goes

${results.parts.length === 0 ? '' : PARTS_SHOWN}As perf tells it, with two nodes on two processors: the engine's save has one processor for a good quarter of the time, since it hashes and writes all
layers to its disk before it sends the first byte. Then half of the time goes into the way through each containerd's API, 10 ms of the
machine for each MB: gRPC, a quarter of it the garbage collection of what that allocates, a tenth the hashing. Writing the same bytes to a
file costs 1 ms. The rest is unpacking: as many files as the layers hold, in each node. So ours reads the engine once for all nodes, keeps
the bytes beside the engine, and puts large layers to where containerd has its content; the save and the unpacking are as they were.
`
}

/** Bars, one below the other, each beginning where the one before ends. */
export function picture(results: Results): string {
  const sums = PARTS.map((_, index) => median(results.parts.map(round => round[index] ?? 0)))
  const total = Math.max(...sums)
  const scale = 560 / total
  const bars = PARTS.map(({ title }, index) => {
    const from = Math.min(sums[index - 1] ?? 0, sums[index] ?? 0)
    const to = sums[index] ?? 0
    const y = 30 + index * 44
    return [
      `<text x="20" y="${y}">${title}: ${seconds(Math.max(0, to - from))}</text>`,
      `<rect x="${(20 + from * scale).toFixed(0)}" y="${y + 6}" width="${Math.max(2, (to - from) * scale).toFixed(0)}" height="16" rx="2"/>`,
    ].join('\n')
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 ${30 + PARTS.length * 44}" font-family="sans-serif" font-size="14">
<style>text { fill: #57606a } rect { fill: #0969da } @media (prefers-color-scheme: dark) { text { fill: #8d96a0 } rect { fill: #4493f8 } }</style>
${bars.join('\n')}
</svg>
`
}

function measured(results: Results) {
  return Object.entries(ROWS).flatMap(([name, row]) => {
    const found = results.rows[name]
    if (found === undefined) return []
    return [{ row, ...found, value: result(row.kind, found.ours, found.baseline) }]
  })
}

function show(kind: 'ratio' | 'more' | 'absolute', value: number): string {
  return kind === 'ratio' ? value.toFixed(2) : `${(value / 1000).toFixed(2)} s`
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map(cells => `| ${cells.join(' | ')} |`).join('\n')
}
