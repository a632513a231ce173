/** The one way in which each group of options is judged: by examples of what is right and of what is wrong. */
import { describe, expect, test } from 'vitest'
import { SCHEMAS, type Schema } from '../../scripts/generate.ts'
import type { Given } from '../../src/lib/given.ts'
import { Problem } from '../../src/lib/problem.ts'
import type { Option, Options } from '../../src/options.ts'
import { parseGiven } from '../builders.ts'

export const CLUSTER = 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n'
export const SHA256 = 'a'.repeat(64)
/** The files that there are for these examples. */
export const FILES = {
  'kind.yaml': `${CLUSTER}nodes:\n- role: control-plane\n`,
  'buildkitd.toml': 'debug = true\n',
  'empty.yaml': '',
  'pod.yaml': 'kind: Pod\napiVersion: v1\n',
  'ca.pem': '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  'broken.yaml': 'kind: Cluster\n  nodes: [\n',
}

export interface Examples {
  /** An option, what it is given, and what comes of it. */
  readonly good: readonly (readonly [option: string, given: Given, parsed: Partial<Options>])[]
  /** The one sentence with which what is given is refused. */
  readonly wrong: readonly (readonly [sentence: string, given: Readonly<Record<string, Given>>])[]
}

/** Each option of the group needs an example of either kind. */
export function judgeOptions(options: readonly Option[], { good, wrong }: Examples): void {
  describe('what is right is taken', () => {
    test.each(good)('%s: %j', (option, given, parsed) => {
      expect(parseGiven({ [option]: given }, FILES)).toEqual({ ...parseGiven({}), ...parsed })
    })

    test.each(good)("and plugin.yml's schema takes it too: %s: %j", (name, given) => {
      const option = options.find(known => known.name === name)
      expect(option && accepts(SCHEMAS[option.schema], given)).toBe(true)
    })
  })

  describe('what is wrong is refused in one sentence that names the option', () => {
    test.each(wrong)('%s', (sentence, given) => {
      expect(refusals(given)).toEqual([sentence])
    })
  })

  test.each(options.map(({ name }) => name))('%s has an example of either kind', name => {
    expect(good.some(([option]) => option === name)).toBe(true)
    expect(wrong.some(([sentence]) => sentence.split(':')[0]?.split(', ').includes(name))).toBe(true)
  })
}

/** The sentences with which these options are refused. */
export function refusals(given: Readonly<Record<string, Given>>): string[] {
  try {
    parseGiven(given, FILES)
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(Problem)
    return (thrown as Problem).message.split('\n')
  }
  return []
}

/** A JSON schema validator for as much of it as plugin.yml uses. */
function accepts({ type, items }: Schema, value: Given): boolean {
  const types = typeof type === 'string' ? [type] : type
  if (Array.isArray(value))
    return types.includes('array') && value.every(item => items !== undefined && accepts(items, item))
  return types.includes(typeof value) || (types.includes('integer') && Number.isInteger(value))
}
