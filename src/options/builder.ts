/** The option of a builder on the cluster. Pure. */
import { type Given, type Reader, show, text } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import type { Option, ParseWorld, ReadFile } from './option.ts'

export const BUILDER_OPTIONS: readonly Option[] = [
  {
    name: 'builder',
    schema: 'builder',
    default: 'false',
    sentence:
      "A buildx builder on the cluster: `true`, or its driver's options as lines of `key=value`, such as `replicas=3`.",
  },
]

/** A builder as `docker buildx create --driver kubernetes` takes it. */
export interface BuilderOptions {
  /** The driver's options by name, for buildx to judge. */
  readonly driver: Readonly<Record<string, string>>
  /** The text of a buildkitd.toml. */
  readonly config: string | undefined
  /** Flags of buildkitd, as one line. */
  readonly flags: string | undefined
}

export interface BuilderOption {
  readonly builder: BuilderOptions | undefined
}

export function readBuilderOption({ option }: Reader, world: ParseWorld): BuilderOption {
  return {
    builder: option('builder', value => builder(value, world.readFile), undefined),
  }
}

function builder(value: Given, readFile: ReadFile): BuilderOptions | undefined {
  const word = typeof value === 'string' ? value.trim().toLowerCase() : value
  if (word === false || word === 'false') return undefined
  const given = word === true || word === 'true' ? {} : Object.fromEntries(pairs(value))
  const { 'buildkitd-config': config, 'buildkitd-flags': flags, ...driver } = given
  return { driver, config: config === undefined ? undefined : buildkitdConfig(config, readFile), flags }
}

/** Lines of `key=value`, which may have commas in them; on Buildkite also an array of such, or a map. */
function pairs(value: Given): [key: string, value: string][] {
  if (value !== null && typeof value === 'object' && !Array.isArray(value)) {
    return Object.entries(value).map(([key, item]) => {
      if (typeof item === 'object' || item === undefined) {
        throw new Problem(`${key} is ${show(item)}; write it as one text, as buildx takes it, such as "a=b,c=d"`)
      }
      return [key, String(item)]
    })
  }
  const lines = (Array.isArray(value) ? value : [value]).flatMap(item => text(item).split('\n'))
  // Quotes around the whole are how buildx' own command line wants values with commas.
  const words = lines.map(line => line.trim().replace(/^"(.*)"$/, '$1')).filter(line => line !== '')
  return words.map(line => {
    const match = /^([^=\s]+)=(.*)$/.exec(line)
    if (!match) throw new Problem(`${show(line)} is neither true nor false, nor a driver option such as replicas=3`)
    return [match[1] ?? '', (match[2] ?? '').trim()]
  })
}

function buildkitdConfig(given: string, readFile: ReadFile): string {
  // A path has no line break and no "key = value" in it.
  if (/[\n=]/.test(given)) return given
  const content = readFile(given)
  if (content === undefined) throw new Problem(`buildkitd-config: ${show(given)} is no file here, and no TOML either`)
  return content
}
