import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { parse as parseYaml } from 'yaml'
import { COMMANDS, parseLoad, parseLogs } from '../src/commands.ts'
import { readCommandLine } from '../src/host/command-line.ts'
import { formatDuration } from '../src/lib/duration.ts'
import type { Given } from '../src/lib/given.ts'
import { OPTION_GROUPS, OPTIONS } from '../src/options.ts'
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
        else if (of === 'logs') parseLogs(given)
        else if (of === '') parseGiven(JSON.parse(JSON.stringify(given).replace(/\$\{\{[^}]*\}\}/g, '1.34')), CONFIGS)
      }
    }
  })

  test('shows commands that there are', () => {
    // In blocks and in running text; a word in capitals stands for what the reader has.
    const lines = [...read(file).matchAll(/kind-in-dind (?=[a-z-])([^`\n|&#()"]+)/g)]
      .map(match => (match[1] ?? '').trim().split(/\s+/))
      .filter(
        ([verb = '', second = '']) =>
          COMMANDS.some(({ name }) => name === verb) && /^(--|[a-z]+:|[A-Z]+$|$)/.test(second),
      )
    for (const words of lines) expect(readCommandLine(words).verb).toBe(words[0])
    if (file === 'README.md') expect(lines.length).toBeGreaterThan(3)
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

test.each(OPTION_GROUPS)('$page names each option of its group: $title', ({ page, options }) => {
  const text = read(page)
  expect(options.map(({ name }) => name).filter(name => !text.includes(`\`${name}`))).toEqual([])
})

const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.ts'))
const sources = files.map(file => read(`src/${file}`)).join('\n')

describe('deadlines', () => {
  const page = read('docs/deadlines.md')
  const rows = [...page.matchAll(/^\|.*\| (\S+) \|.*\| `(\S+)` `(\S+)` \|$/gm)].map(([, limit, file, name]) => ({
    where: `${file} ${name}`,
    limit,
  }))

  test('are all there, with what the source says', () => {
    const inSource = files.flatMap(file =>
      deadlinesIn(read(`src/${file}`)).map(({ name, limit }) => ({ where: `${file} ${name}`, limit })),
    )
    expect(inSource.length).toBeGreaterThan(40)
    expect(rows.toSorted((a, b) => a.where.localeCompare(b.where))).toEqual(
      inSource.toSorted((a, b) => a.where.localeCompare(b.where)),
    )
  })

  test('that are options have their defaults', () => {
    const options = [...page.matchAll(/^\| .* \| `([\w-]+)` \| (\S+) \|/gm)]
    expect(options.map(([, option, value]) => [option, value])).toEqual(
      ['docker-wait', 'wait', 'wait'].map(name => [name, OPTIONS.find(option => option.name === name)?.default]),
    )
  })

  test('end with what the program says', () => {
    const said = [...page.matchAll(/`([^`\n]+)`/g)].flatMap(([, words = '']) => (words.includes(' ') ? words : []))
    const commands = ['docker rm', 'down --stale']
    expect(said.filter(words => !commands.includes(words) && !sources.includes(words))).toEqual([])
  })

  test('every command has one, and every question to the API server', () => {
    const without = files.flatMap(file => waitsWithout(file, read(`src/${file}`)))
    expect(without).toEqual([])
  })
})

test('architecture.md names everything in src/', () => {
  const page = read('docs/architecture.md')
  const entries = readdirSync(join(ROOT, 'src'), { withFileTypes: true })
  const named = entries.filter(({ name }) => name !== 'tsconfig.json')
  const names = named.map(entry => (entry.isDirectory() ? `${entry.name}/` : entry.name))
  expect(names.filter(name => !page.includes(` ${name}`))).toEqual([])
})

test('moving.md names options, outputs and variables that there are', () => {
  const rows = read('docs/moving.md')
    .split('\n')
    .filter(line => /^\| [^-]/.test(line))
  const codes = rows.flatMap(row => [...(row.split('|')[2] ?? '').matchAll(/`([^`]+)`/g)].map(match => match[1] ?? ''))
  const options = OPTION_GROUPS.flatMap(group => group.options).map(({ name }) => name)
  const known = [...options, ...OUTPUTS.map(({ name }) => name)]
  // What belongs to a config of kind's, and the rest of a command line.
  const others = /^(kind-in-dind |\$KIND_IN_DIND_|networking\.|featureGates$|kubeadmConfigPatches$)/
  expect(codes.length).toBeGreaterThan(40)
  expect(codes.filter(code => !known.includes(code.split(':')[0] ?? '') && !others.test(code))).toEqual([])
})

describe('troubleshooting', () => {
  const quoted = [...read('docs/troubleshooting.md').matchAll(/^(?:### |- )`([^`]+)`/gm)].map(match => match[1] ?? '')

  test.each(quoted.map(message => [message]))('the program says: %s', message => {
    for (const part of message.split('…').map(words => words.trim().replace(/^,\s*/, ''))) {
      if (part !== '') expect(`${sources}${read('hooks/find-node')}`).toContain(part)
    }
  })
})

/** Constants that are named like a deadline and are none: bytes, and how often something is said. */
const NO_DEADLINES = ['RECORD_LIMIT', 'JSON_LIMIT']
const NO_DEADLINES_IN = { pause: true, pauses: true, again: true, room: true }

/** The deadlines that a source file says, each as people read it. */
function deadlinesIn(source: string): { name: string; limit: string }[] {
  const constants = source.matchAll(
    /^(?:export )?const ((?:\w+_)?(?:LIMITS?|TIMEOUT|PATIENCE|NOTICE|GRACE|TIMES|LATE|STALE))(?:: \w+)? = (\{[^}]*\}|.*)$/gm,
  )
  return [...constants].flatMap(([, name = '', expression = '']) => {
    if (NO_DEADLINES.includes(name)) return []
    // Numbers, and what is computed of them.
    const value: unknown = new Function(`return (${expression})`)()
    const unit = new RegExp(`, in seconds\\. \\*/\\n(?:export )?const ${name} `).test(source) ? 1000 : 1
    if (typeof value === 'number') return [{ name, limit: formatDuration(value * unit) }]
    return Object.entries(value as Record<string, number>)
      .filter(([key]) => !(key in NO_DEADLINES_IN))
      .map(([key, limit]) => ({ name: `${name}.${key}`, limit: formatDuration(limit) }))
  })
}

/** What hands on the commands of others with the time-outs that they have. */
const HANDS_ON = ['lib/watch-runner.ts']

/** Where commands are run without a time-out, or the API server is asked but by `ask`, which has one. */
function waitsWithout(file: string, source: string): string[] {
  if (HANDS_ON.includes(file)) return []
  const found: string[] = []
  const isRunner = (node: ts.Node): boolean => /(^|\.)(run|runner)$/.test(node.getText())
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const { expression, name } = node.expression
      const options = node.arguments[1]?.getText() ?? ''
      if (['run', 'try', 'start'].includes(name.text) && isRunner(expression) && !/\btimeout\b/.test(options))
        found.push(`${file}: ${node.getText().slice(0, 80)}`)
      if (name.text === 'makeApiClient' && file !== 'cluster/api.ts') found.push(`${file}: makeApiClient`)
    }
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true))
  return found
}
