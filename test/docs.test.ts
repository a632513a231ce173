import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { parseLoad } from '../src/commands.ts'
import type { Given } from '../src/lib/given.ts'
import { OPTIONS } from '../src/options.ts'
import { OUTPUTS } from '../src/outputs.ts'
import { parseGiven } from './builders.ts'

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const documents = [...readdirSync(ROOT), ...readdirSync(join(ROOT, 'docs')).map(name => `docs/${name}`)].filter(name =>
  name.endsWith('.md'),
)

describe.each(documents)('%s', file => {
  test('links to what is there', () => {
    const links = [...read(file).matchAll(/\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)/g)].map(match => match[1] ?? '')
    expect(links.filter(link => !existsSync(join(ROOT, dirname(file), link)))).toEqual([])
  })

  test('shows steps and pipelines with options that there are', () => {
    for (const [, yaml = ''] of read(file).matchAll(/```yaml\n([\s\S]*?)```/g)) {
      for (const { of, given } of usesIn(parseYaml(yaml))) {
        if (of === 'load') parseLoad(given)
        else if (of === '') parseGiven(JSON.parse(JSON.stringify(given).replace(/\$\{\{[^}]*\}\}/g, '1.34')), CONFIGS)
      }
    }
  })

  test('names no variable that later commands do not get', () => {
    const given = ['PORT', 'CI', 'DEBUG', 'EXPORTS', 'FOLDER', 'LAB', 'NAMES', ...OUTPUTS.map(({ name }) => name)]
    const known = given.map(name => name.toUpperCase().replaceAll('-', '_'))
    const named = [...read(file).matchAll(/KIND_IN_DIND_([A-Z]+(?:_[A-Z]+)*)/g)].map(match => match[1] ?? '')
    expect(named.filter(name => !known.includes(name))).toEqual([])
  })
})

/** Files that a repository may have. */
const CONFIGS = { 'kind.yaml': 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n' }

/** Every use of ours in a workflow, a step or a pipeline. */
function usesIn(yaml: unknown): { of: string; given: Record<string, Given> }[] {
  if (Array.isArray(yaml)) return yaml.flatMap(usesIn)
  if (yaml === null || typeof yaml !== 'object') return []
  const map = yaml as Record<string, unknown>
  const uses = /^OWNER\/kind-in-dind\/?(\w*)@v1$/.exec(String(map['uses'] ?? ''))
  const own = uses ? [{ of: uses[1] ?? '', given: (map['with'] ?? {}) as Record<string, Given> }] : []
  const plugins = Object.entries(map)
    .filter(([key]) => /^https:\/\/github\.com\/OWNER\/kind-in-dind#v1\.0\.0$/.test(key))
    .map(([, given]) => ({ of: '', given: (given ?? {}) as Record<string, Given> }))
  return [...own, ...plugins, ...Object.values(map).flatMap(usesIn)]
}

test('the README names every page', () => {
  const readme = read('README.md')
  const pages = documents.filter(file => file.startsWith('docs/'))
  expect(pages.filter(page => !readme.includes(`](${page})`))).toEqual([])
})

test('every option has a page beside the table', () => {
  const pages = documents
    .filter(file => file.startsWith('docs/'))
    .map(read)
    .join('\n')
  expect(OPTIONS.map(({ name }) => name).filter(name => !pages.includes(`\`${name}`))).toEqual([])
})

describe('troubleshooting', () => {
  const sources = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter(file => file.endsWith('.ts'))
    .map(file => read(`src/${file}`))
    .join('\n')
  const quoted = [...read('docs/troubleshooting.md').matchAll(/^(?:### |- )`([^`]+)`/gm)].map(match => match[1] ?? '')

  test.each(quoted.map(message => [message]))('the program says: %s', message => {
    for (const part of message.split('…').map(words => words.trim().replace(/^,\s*/, ''))) {
      if (part !== '') expect(sources).toContain(part)
    }
  })
})
