/**
 * Measures how fast we are against what people do today, on the lab.
 * Arguments: [--rounds N] [GROUP]... of whole, ready, start, loads, growth, parts, builder; all by default.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { names } from '../e2e/lab.ts'
import { createBuilderPlace, measureBuilder } from './builder.ts'
import { builderMarkdown } from './builder-report.ts'
import { createBench } from './place.ts'
import { failures, markdown, picture, type Results } from './report.ts'
import { GROUPS, GROWTH, measureGrowth, measureLoads, measureParts, type Round, startLoads } from './rows.ts'

/** How many rounds growth and parts have at the most. */
const SHOWN = 2

const LOADS = ['loads', 'growth', 'parts']
const BUILDER = 'builder'
const FILES = {
  results: 'results.json',
  report: 'RESULTS.md',
  picture: 'where-the-time-goes.svg',
  builder: 'BUILDER.md',
}
const path = (name: keyof typeof FILES): string => join(import.meta.dirname, FILES[name])

const { values, positionals } = parseArgs({
  args: process.argv.slice(3),
  options: { rounds: { type: 'string', default: '5' } },
  allowPositionals: true,
})
const rounds = Number(values.rounds)
const known = [...Object.keys(GROUPS), ...LOADS, BUILDER]
const asked = positionals.length > 0 ? positionals : known
if (asked.some(group => !known.includes(group)) || !(rounds >= 1))
  throw new Error(`usage: bench [--rounds N] [${known.join('|')}]...`)
const groups = asked.filter(group => group !== BUILDER)

const say = (line: string): void => void process.stdout.write(`${new Date().toTimeString().slice(0, 8)} ${line}\n`)
const samples: Record<string, { ours: number[]; baseline: number[] }> = {}
const growth = GROWTH.map(() => ({ ours: [] as number[], baseline: [] as number[] }))
const parts: (readonly number[])[] = []

function keep(round: Round): void {
  for (const [row, { ours, baseline }] of Object.entries(round)) {
    samples[row] ??= { ours: [], baseline: [] }
    const kept = samples[row]
    kept.ours.push(ours)
    if (baseline !== undefined) kept.baseline.push(baseline)
    say(
      `${row}: ${(ours / 1000).toFixed(2)} s${baseline === undefined ? '' : `, baseline ${(baseline / 1000).toFixed(2)} s`}`,
    )
  }
}

// A bench that is ended takes its place with it, and what fails by that waits until it is gone.
let place: { remove(): Promise<void> } | undefined
let removal: Promise<void> | undefined
const removePlace = async (): Promise<void> => {
  removal ??= place?.remove()
  await removal
  removal = undefined
  place = undefined
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await removePlace()
    process.exit(130)
  })
}

const measured = new Date().toISOString().slice(0, 10)
const machine = (docker: string): string =>
  `Measured on ${measured}: ${cpus().length} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}; kind ${names.kindVersion}, Kubernetes ${names.kubernetesVersion}, Docker ${docker}.`

if (asked.includes(BUILDER)) {
  say('making the place of the builder')
  const own = await createBuilderPlace()
  place = own
  try {
    const builder = await measureBuilder(own, Math.min(rounds, 3), say)
    const version = await own.docker('version', '--format', '{{.Server.Version}}')
    writeFileSync(path('builder'), builderMarkdown(builder, machine(version.trim())))
  } finally {
    await removePlace()
  }
  say(`written: ${FILES.builder} in test/bench`)
}
if (groups.length === 0) process.exit()

say('making the place')
const bench = await createBench()
place = bench
try {
  for (const group of groups) {
    const measure = GROUPS[group]
    for (let round = 0; measure !== undefined && round < rounds; round++) keep(await measure(bench, round))
  }
  if (groups.some(group => LOADS.includes(group))) {
    const loads = await startLoads(bench)
    for (let round = 0; round < rounds; round++) {
      if (groups.includes('loads')) keep(await measureLoads(loads, round))
      // Those two show how things are, not how fast they are against a bound.
      if (round >= SHOWN) continue
      if (groups.includes('parts')) parts.push(await measureParts(loads))
      if (!groups.includes('growth')) continue
      for (const [index, { ours, baseline }] of (await measureGrowth(loads, round)).entries()) {
        growth[index]?.ours.push(ours)
        growth[index]?.baseline.push(baseline)
        const { nodes, images } = GROWTH[index] as (typeof GROWTH)[number]
        say(
          `${nodes} nodes, ${images} images: ${(ours / 1000).toFixed(2)} s, baseline ${(baseline / 1000).toFixed(2)} s`,
        )
      }
    }
  }
} finally {
  await removePlace()
}

const before = existsSync(path('results')) ? (JSON.parse(readFileSync(path('results'), 'utf8')) as Results) : undefined
const results: Results = {
  rows: {
    ...before?.rows,
    ...Object.fromEntries(
      Object.entries(samples).map(([row, kept]) => [row, { measured: machine(bench.version), ...kept }]),
    ),
  },
  growth: groups.includes('growth') ? growth : (before?.growth ?? []),
  parts: groups.includes('parts') ? parts : (before?.parts ?? []),
  machine: machine(bench.version),
}
writeFileSync(path('results'), `${JSON.stringify(results)}\n`)
writeFileSync(path('report'), markdown(results))
if (results.parts.length > 0) writeFileSync(path('picture'), picture(results))
say(`written: ${FILES.results}, ${FILES.report}, ${FILES.picture} in test/bench`)
for (const failure of failures(results)) {
  say(`too slow: ${failure}`)
  process.exitCode = 1
}
