/** The options of the job's registry, and of the mirrors of others. Pure. */
import { boolean, type Given, integer, list, type Reader, show } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { type Mirror, readMirror } from '../registry-mirrors.ts'
import type { Option, ParseWorld, ReadFile } from './option.ts'

export const REGISTRY_OPTIONS: readonly Option[] = [
  {
    name: 'registry',
    schema: 'boolean or port',
    default: 'false',
    sentence: 'A registry for the job: `true`, or the port of the engine that it is to have.',
  },
  {
    name: 'registry-mirrors',
    schema: 'list',
    default: '',
    sentence:
      'Where images are looked for first, by nodes and for what is pulled here: `docker.io=https://mirror.example`, also with `user:password@`, a folder, `http:` or a CA: `quay.io=https://mirror.example/quay ca=ca.pem`.',
  },
]

/** A registry for the job. */
export interface RegistryWish {
  /** Its port on the engine; undefined lets this program pick. */
  readonly port: number | undefined
}

export interface RegistryOptions {
  readonly registry: RegistryWish | undefined
  /** Several of one registry are asked in this order. */
  readonly registryMirrors: readonly Mirror[]
}

export function readRegistryOptions({ option }: Reader, world: ParseWorld): RegistryOptions {
  return {
    registry: option('registry', registry, undefined),
    registryMirrors: option('registry-mirrors', value => mirrors(value, world.readFile), []),
  }
}

function mirrors(value: Given, readFile: ReadFile): Mirror[] {
  const lines = list(value)
  // A password with a comma in it is in several lines then, which nobody may see.
  const broken = lines.findIndex(line => /^[^=\s]+=[a-z]+:\/\/[^@/]*:(?!\d+(\/|\s|$))[^@]*$/i.test(line))
  if (broken !== -1 && lines.slice(broken + 1).some(line => line.includes('@'))) {
    throw new Problem(
      'a user and password are in several lines; what a password has of commas, blanks and line breaks is written as %2C, %20 and %0A',
    )
  }
  const read = lines.map(line => readMirror(line, readFile))
  const key = ({ upstream, scheme, host, path }: Mirror): string => `${upstream}=${scheme}://${host}/${path}`
  const twice = read.map(key).find((one, index, all) => all.indexOf(one) !== index)
  if (twice !== undefined) throw new Problem(`${twice.replace(/\/$/, '')} is there twice`)
  return read
}

function registry(value: Given): RegistryWish | undefined {
  const isPort = typeof value === 'number' || (typeof value === 'string' && /^\s*\d+\s*$/.test(value))
  if (isPort) return { port: integer(value, 1, 65535) }
  try {
    return boolean(value) ? { port: undefined } : undefined
  } catch {
    throw new Problem(`${show(value)} is neither true nor false, nor a port such as 5001`)
  }
}
