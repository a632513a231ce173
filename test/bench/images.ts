/** Images to measure with: of one base, each with layers of its own, as a project's images are. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Argv } from '../../src/lib/run.ts'
import { names, runner } from '../e2e/lab.ts'

const MB = 1_000_000

/** The base that all have, and what each adds to it: 220 MB in all. */
const BASE = 160 * MB
const OWN = 60 * MB

/** What a file has at the most; a distribution's and a runtime's are rather small. */
const FILE = 40_000

/** A base, and images on it. */
export interface ImageSet {
  readonly base: string
  readonly images: readonly string[]
}

/** Makes a set in the engine of a sidecar. @param number sets of other numbers have the same sizes and nothing in common */
export async function makeImages(sidecar: string, number: number, count: number): Promise<ImageSet> {
  const inside = (...argv: string[]): Argv => [names.tools.docker, 'exec', '--interactive', sidecar, ...argv]
  const folder = mkdtempSync(join(tmpdir(), 'bench-'))
  const set = {
    base: `bench${number}/base:1`,
    images: Array.from({ length: count }, (_, index) => `bench${number}/app${index + 1}:1`),
  }
  try {
    await feed(writeFiles(join(folder, 'base'), BASE, number * 1000), inside('docker', 'import', '-', set.base))
    for (const [index, image] of set.images.entries()) {
      const context = join(folder, `app${index}`)
      writeFiles(join(context, 'own'), OWN, number * 1000 + index + 1)
      writeFileSync(join(context, 'Dockerfile'), `FROM ${set.base}\nCOPY own /own\n`)
      await feed(context, inside('env', 'DOCKER_BUILDKIT=0', 'docker', 'build', '--quiet', '--tag', image, '-'))
      rmSync(context, { recursive: true })
    }
    return set
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Gives a folder as a tar stream to a command. */
async function feed(folder: string, argv: Argv): Promise<void> {
  const source = runner.start(['tar', '--create', `--directory=${folder}`, '.'])
  const sink = runner.start(argv)
  sink.stdout.resume()
  source.stdout.pipe(sink.stdin)
  await Promise.all([source.ended, sink.ended])
}

/** Files of half noise and half text, the same each time for the same seed. @returns the folder */
function writeFiles(folder: string, bytes: number, seed: number): string {
  mkdirSync(folder, { recursive: true })
  const noise = Buffer.alloc(4 * MB)
  let state = (seed + 1) * 2654435761
  for (let at = 0; at < noise.length; at += 4) {
    // xorshift32
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    noise.writeInt32LE(state, at)
  }
  const text = Buffer.from('A line of the kind that fills programs and their documents.\n'.repeat(FILE / 120))
  for (let written = 0, index = 0; written < bytes; written += FILE, index++) {
    const part = join(folder, `${index % 100}`)
    if (index < 100) mkdirSync(part)
    const from = (index * 7919) % (noise.length - FILE / 2)
    writeFileSync(join(part, `${index}`), Buffer.concat([noise.subarray(from, from + FILE / 2), text]))
  }
  return folder
}
