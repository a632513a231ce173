import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { actionYaml, between, pluginYaml, subActionYaml, table, withTables } from '../scripts/generate.ts'
import { OPTIONS } from '../src/options.ts'
import { OUTPUTS } from '../src/outputs.ts'

// `npm run generate` is this file with --update: then the files are written, else they are compared.
describe('the written files are what the lists say (npm run generate)', () => {
  test('action.yml', async () => {
    await expect(actionYaml()).toMatchFileSnapshot('../action.yml')
  })

  test('load/action.yml', async () => {
    await expect(subActionYaml('load')).toMatchFileSnapshot('../load/action.yml')
  })

  test('logs/action.yml', async () => {
    await expect(subActionYaml('logs')).toMatchFileSnapshot('../logs/action.yml')
  })

  test('plugin.yml', async () => {
    await expect(pluginYaml()).toMatchFileSnapshot('../plugin.yml')
  })

  test('README.md', async () => {
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
    await expect(withTables(readme)).toMatchFileSnapshot('../README.md')
  })
})

test('both hosts have every option, and GitHub every output', () => {
  const options = OPTIONS.map(option => option.name)
  const action = parse(actionYaml()) as { inputs: object; outputs: object }
  const plugin = parse(pluginYaml()) as { configuration: { properties: object; additionalProperties: boolean } }
  expect(Object.keys(action.inputs)).toEqual([...options, 'job-status'])
  expect(Object.keys(action.outputs)).toEqual(OUTPUTS.map(output => output.name))
  expect(Object.keys(plugin.configuration.properties)).toEqual(options)
  expect(plugin.configuration.additionalProperties).toBe(false)
})

test('an input says what its absence means, and where absence means nothing it does not', () => {
  const { inputs } = parse(actionYaml()) as { inputs: Record<string, { description: string; required: boolean }> }
  expect(inputs['wait']?.description).toMatch(/ Default: 5m\.$/)
  expect(inputs['images']?.description).not.toMatch(/Default/)
  expect(Object.values(inputs).map(input => input.required)).not.toContain(true)
})

test('a table escapes what would end a cell', () => {
  expect(table(['a', 'b'], [['`x|y`', 'z']])).toBe('| a | b |\n|---|---|\n| `x\\|y` | z |')
})

describe('between', () => {
  test('replaces what stands between the markers and nothing else', () => {
    expect(between('# t\n<!-- x -->\nold\n<!-- /x -->\nrest $1\n', 'x', 'new $&')).toBe(
      '# t\n<!-- x -->\nnew $&\n<!-- /x -->\nrest $1\n',
    )
  })

  test.each([
    ['no markers', 'text'],
    ['no end', '<!-- x -->'],
    ['two starts', '<!-- x --><!-- x --><!-- /x -->'],
    ['two ends', '<!-- x --><!-- /x --><!-- /x -->'],
    ['end first', '<!-- /x --><!-- x -->'],
  ])('says which markers are wanted: %s', (_, text) => {
    expect(() => between(text, 'x', '')).toThrow('README.md needs <!-- x --> and <!-- /x -->')
  })
})
