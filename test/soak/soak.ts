/**
 * Ends jobs in every way and makes many of them, on the lab, and writes down what was left.
 * Arguments: [--rows N] [--rounds N] [--jobs N] [--cancels N] [PART]... of rows, rounds, crowd, cancel; all by default.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ALL_RUNS } from '../e2e/ends-table.ts'
import { docker, names } from '../e2e/lab.ts'
import { cancel, crowd, rounds, rows } from './parts.ts'
import { failures, markdown, type Results } from './results.ts'

const PARTS = ['rows', 'rounds', 'crowd', 'cancel'] as const
const path = (name: string): string => join(import.meta.dirname, name)

const { values, positionals } = parseArgs({
  args: process.argv.slice(3),
  options: {
    rows: { type: 'string', default: `${ALL_RUNS.length}` },
    rounds: { type: 'string', default: '20' },
    jobs: { type: 'string', default: '30' },
    cancels: { type: 'string', default: '5' },
  },
  allowPositionals: true,
})
const wanted = positionals.length > 0 ? positionals : PARTS
if (
  wanted.some(part => !PARTS.some(known => known === part)) ||
  Object.values(values).some(value => !(Number(value) >= 1))
)
  throw new Error(`usage: soak [--rows N] [--rounds N] [--jobs N] [--cancels N] [${PARTS.join('|')}]...`)

const say = (line: string): void => void process.stdout.write(`${new Date().toTimeString().slice(0, 8)} ${line}\n`)
const cores = cpus().length
const version = (await docker('run', '--rm', '--entrypoint', 'dockerd', names.images.dind, '--version')).trim()
const on = `Run on ${new Date().toISOString().slice(0, 10)}: ${cores} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}; kind ${names.kindVersion}, Kubernetes ${names.kubernetesVersion}, ${version}, Node ${process.version}.`

const saved = path('results.json')
const before = (): Results => (existsSync(saved) ? (JSON.parse(readFileSync(saved, 'utf8')) as Results) : {})
const run = {
  rows: async () => ({ rows: { ...(await rows(say, Number(values.rows))), on } }),
  rounds: async () => ({ rounds: { ...(await rounds(say, Number(values.rounds))), on } }),
  crowd: async () => ({ crowd: { ...(await crowd(say, Number(values.jobs))), on } }),
  cancel: async () => ({ cancel: { ...(await cancel(say, Number(values.cancels), [0, cores, 2 * cores])), on } }),
} satisfies Record<(typeof PARTS)[number], () => Promise<Results>>
for (const part of PARTS.filter(part => wanted.includes(part))) {
  say(part)
  const found = await run[part]()
  // Read anew: another part may have run meanwhile.
  const results: Results = { ...before(), ...found }
  writeFileSync(saved, `${JSON.stringify(results)}\n`)
  writeFileSync(path('RESULTS.md'), markdown(results))
}
say('written: RESULTS.md and results.json in test/soak')
for (const failure of failures(before())) {
  say(`did not hold: ${failure}`)
  process.exitCode = 1
}
