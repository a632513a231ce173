import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path/posix'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'

// The rules of the house. Paths are below src/; a folder ends in a slash.

const LEAVES = ['options.ts', 'plan.ts', 'outputs.ts', 'state.ts', 'world.ts', 'host/host.ts', 'report/report.ts']

/** What each room may import beside itself. Imports go down this table, never up. */
const ROOMS: readonly { readonly room: string; readonly files: readonly string[]; readonly from: readonly string[] }[] =
  [
    { room: 'main', files: ['main.ts'], from: ['performance', 'stories', 'host', 'lib'] },
    { room: 'performance', files: ['perform.ts'], from: ['host', 'report', 'leaves', 'lib'] },
    {
      room: 'stories',
      files: ['stories.ts', 'pre.ts', 'post.ts', 'load.ts', 'logs.ts', 'status.ts'],
      from: [
        'chapters',
        'commands',
        'engine',
        'cluster',
        'images',
        'builder',
        'report',
        'leaves',
        'kind config',
        'lib',
      ],
    },
    {
      room: 'chapters',
      files: ['pre/', 'post/'],
      from: ['engine', 'cluster', 'images', 'builder', 'report', 'leaves', 'kind config', 'mirrors', 'lib'],
    },
    { room: 'builder', files: ['builder/'], from: ['engine', 'leaves', 'mirrors', 'lib'] },
    { room: 'images', files: ['images/'], from: ['engine', 'leaves', 'mirrors', 'lib'] },
    { room: 'cluster', files: ['cluster/'], from: ['engine', 'leaves', 'kind config', 'lib'] },
    { room: 'engine', files: ['engine/'], from: ['leaves', 'lib'] },
    { room: 'commands', files: ['commands.ts'], from: ['leaves', 'lib'] },
    { room: 'leaves', files: LEAVES, from: ['option groups', 'kind config', 'mirrors', 'lib'] },
    { room: 'option groups', files: ['options/'], from: ['kind config', 'mirrors', 'lib'] },
    { room: 'mirrors', files: ['registry-mirrors.ts'], from: ['lib'] },
    { room: 'kind config', files: ['kind-config.ts'], from: ['lib'] },
    { room: 'host', files: ['host/'], from: ['commands', 'leaves', 'lib'] },
    { room: 'report', files: ['report/'], from: ['leaves', 'lib'] },
    { room: 'lib', files: ['lib/'], from: [] },
  ]

/** The one place from which each package, and what is as weighty as one, is imported. */
const IMPORTERS: Readonly<Record<string, string>> = {
  '@actions/core': 'host/github.ts',
  '@actions/http-client': 'cluster/download.ts',
  '@actions/tool-cache': 'cluster/obtain.ts',
  '@kubernetes/client-node': 'cluster/',
  'proper-lockfile': 'cluster/obtain.ts',
  yaml: 'kind-config.ts',
  'node:child_process': 'lib/run.ts',
}

const ENVIRONMENT_READERS = ['main.ts', 'host/']
const LINES: Readonly<Record<string, number>> = { 'main.ts': 40 }
const LINES_ANYWHERE = 999

type Sources = Readonly<Record<string, string>>

describe('the house', () => {
  test('src/ keeps the rules', () => {
    expect(violations(readSources())).toEqual([])
  })

  test('every dependency has its importer, and there is no other', () => {
    const { dependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as { dependencies: object }
    const packages = Object.keys(IMPORTERS).filter(name => !name.startsWith('node:'))
    expect(packages.sort()).toEqual(Object.keys(dependencies).sort())
  })
})

describe('a rule that is broken is told', () => {
  test.each<[string, Sources, string]>([
    [
      'a room imports upwards',
      { 'lib/run.ts': "import { find } from '../engine/find.ts'", 'engine/find.ts': '' },
      'lib/run.ts imports engine/find.ts: lib may not import engine',
    ],
    [
      'a type counts too',
      { 'engine/find.ts': "import type { Kind } from '../cluster/kind.ts'", 'cluster/kind.ts': '' },
      'engine/find.ts imports cluster/kind.ts: engine may not import cluster',
    ],
    [
      'an import when it is needed counts too',
      { 'images/stream.ts': "await import('../cluster/kind.ts')", 'cluster/kind.ts': '' },
      'images/stream.ts imports cluster/kind.ts: images may not import cluster',
    ],
    [
      'so does an export from elsewhere',
      { 'engine/find.ts': "export * from '../cluster/kind.ts'", 'cluster/kind.ts': '' },
      'engine/find.ts imports cluster/kind.ts: engine may not import cluster',
    ],
    [
      'a leaf imports more than a type of another leaf',
      { 'plan.ts': "import { parse } from './options.ts'", 'options.ts': '' },
      'plan.ts imports options.ts: a leaf may import only types of another',
    ],
    ['a file is in no room', { 'utils.ts': '' }, 'utils.ts is in no room'],
    [
      'an import leads nowhere',
      { 'pre.ts': "import { a } from './gone.ts'" },
      'pre.ts imports gone.ts, which is not there',
    ],
    [
      'two files import each other',
      {
        'lib/a.ts': "import { b } from './b.ts'",
        'lib/b.ts': "import { c } from './c.ts'",
        'lib/c.ts': "import { a } from './a.ts'",
      },
      'lib/a.ts imports itself: lib/a.ts, lib/b.ts, lib/c.ts, lib/a.ts',
    ],
    [
      'a package is imported from a second place',
      { 'engine/find.ts': "import * as core from '@actions/core'" },
      'engine/find.ts imports @actions/core, which belongs to host/github.ts',
    ],
    [
      'a part of a package is that package',
      { 'host/github.ts': "import { KubeConfig } from '@kubernetes/client-node/dist/config.js'" },
      'host/github.ts imports @kubernetes/client-node, which belongs to cluster/',
    ],
    [
      'a package is not in the table',
      { 'engine/find.ts': "import _ from 'lodash/fp'" },
      'engine/find.ts imports lodash, which is not in the table of packages',
    ],
    [
      'a process is started beside the runner',
      { 'engine/find.ts': "import { spawn } from 'node:child_process'" },
      'engine/find.ts imports node:child_process, which belongs to lib/run.ts',
    ],
    [
      'Node is imported without node:',
      { 'engine/find.ts': "import { spawn } from 'child_process'" },
      'engine/find.ts imports child_process, which is not in the table of packages',
    ],
    ['the environment is read', { 'pre.ts': 'const a = process.env' }, 'pre.ts reads process.env'],
    ['the environment is read by its key', { 'pre.ts': "const a = process['env']['A']" }, 'pre.ts reads process.env'],
    ['the environment is unpacked', { 'pre.ts': 'const { env } = process' }, 'pre.ts reads process.env'],
    ['it is unpacked with another name', { 'pre.ts': 'const { pid, env: e } = process' }, 'pre.ts reads process.env'],
    [
      'the environment is imported',
      { 'pre.ts': "import { env } from 'node:process'" },
      'pre.ts imports node:process: use the global',
    ],
    ['main.ts is long', { 'main.ts': '\n'.repeat(41) }, 'main.ts has 41 lines, more than 40'],
    ['a file is long', { 'lib/run.ts': '\n'.repeat(1000) }, 'lib/run.ts has 1000 lines, more than 999'],
  ])('%s', (_, sources, sentence) => {
    expect(violations(sources)).toEqual([sentence])
  })

  test('and one that is kept is not', () => {
    const sources = {
      'main.ts': `import { a } from './pre.ts'\nconst b = process.env\n${'\n'.repeat(38)}`,
      'pre.ts': "// process.env is main's\nimport { c } from './cluster/ready.ts'\nimport { d } from './lib/run.ts'",
      'cluster/ready.ts': "import { Watch } from '@kubernetes/client-node'\nimport type { E } from '../plan.ts'",
      'plan.ts': "import type { F } from './options.ts'\nimport { g } from './lib/run.ts'",
      'options.ts': "import { h } from './kind-config.ts'",
      'kind-config.ts': "import { parseAllDocuments } from 'yaml'",
      'host/open.ts': "const h = process.env['H']",
      'lib/run.ts': "import { spawn } from 'node:child_process'\nconst { stdout } = process",
    }
    expect(violations(sources)).toEqual([])
  })
})

/** Every rule that these sources break, as one sentence each. */
function violations(sources: Sources): string[] {
  const files = Object.entries(sources).map(([file, text]) => ({ file, text, ...facts(file, text) }))
  const ours = new Map(files.map(({ file, imports }) => [file, imports.filter(({ path }) => path !== undefined)]))
  return [
    ...files.flatMap(({ file, imports }) => imports.flatMap(found => brokenByImport(file, found, sources))),
    ...files.filter(({ file }) => roomOf(file) === undefined).map(({ file }) => `${file} is in no room`),
    ...cycles(ours),
    ...files
      .filter(({ file, readsEnvironment }) => readsEnvironment && !isOneOf(file, ENVIRONMENT_READERS))
      .map(({ file }) => `${file} reads process.env`),
    ...files.flatMap(({ file, text }) => {
      const lines = text.replace(/\n$/, '').split('\n').length
      const most = LINES[file] ?? LINES_ANYWHERE
      return lines > most ? [`${file} has ${lines} lines, more than ${most}`] : []
    }),
  ]
}

function brokenByImport(file: string, { name, path, typeOnly }: Import, sources: Sources): string[] {
  if (path === undefined) {
    if (name === 'node:process') return [`${file} imports node:process: use the global`]
    const importer = IMPORTERS[name]
    if (importer !== undefined) {
      return isOneOf(file, [importer]) ? [] : [`${file} imports ${name}, which belongs to ${importer}`]
    }
    return name.startsWith('node:') ? [] : [`${file} imports ${name}, which is not in the table of packages`]
  }
  if (sources[path] === undefined) return [`${file} imports ${path}, which is not there`]
  const from = roomOf(file)
  const to = roomOf(path)
  if (from === undefined || to === undefined) return []
  if (from.room === 'leaves' && to.room === 'leaves') {
    return typeOnly ? [] : [`${file} imports ${path}: a leaf may import only types of another`]
  }
  if (from.room === to.room || from.from.includes(to.room)) return []
  return [`${file} imports ${path}: ${from.room} may not import ${to.room}`]
}

/** Where imports of values lead back to where they came from; types are gone at run time. */
function cycles(imports: ReadonlyMap<string, readonly Import[]>): string[] {
  const done = new Set<string>()
  const visit = (file: string, trail: readonly string[]): string[] => {
    if (trail.includes(file)) {
      const circle = [...trail.slice(trail.indexOf(file)), file]
      return [`${file} imports itself: ${circle.join(', ')}`]
    }
    if (done.has(file)) return []
    const found = (imports.get(file) ?? []).flatMap(({ path, typeOnly }) =>
      typeOnly || path === undefined ? [] : visit(path, [...trail, file]),
    )
    done.add(file)
    return found
  }
  return [...imports.keys()].flatMap(file => visit(file, []))
}

interface Import {
  /** The package, or what was written for a file. */
  readonly name: string
  /** Below src/, for a file of ours. */
  readonly path: string | undefined
  readonly typeOnly: boolean
}

function facts(file: string, text: string): { imports: Import[]; readsEnvironment: boolean } {
  const imports: Import[] = []
  let readsEnvironment = false
  const add = (specifier: ts.Node | undefined, typeOnly: boolean): void => {
    if (specifier === undefined || !ts.isStringLiteralLike(specifier)) return
    const name = specifier.text
    const path = name.startsWith('.') ? join(dirname(file), name) : undefined
    const packageName = name.startsWith('node:') ? name : name.split('/', name.startsWith('@') ? 2 : 1).join('/')
    imports.push({ name: path === undefined ? packageName : name, path, typeOnly })
  }
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node)) {
      add(node.moduleSpecifier, node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword)
    }
    if (ts.isExportDeclaration(node)) add(node.moduleSpecifier, node.isTypeOnly)
    if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) add(node.argument.literal, true)
    if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) add(node.arguments[0], false)
    if (isEnvironmentOfProcess(node)) readsEnvironment = true
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest))
  return { imports, readsEnvironment }
}

/** `process.env`, `process['env']`, `{ env } = process`. */
function isEnvironmentOfProcess(node: ts.Node): boolean {
  const isProcess = (of: ts.Node | undefined): boolean =>
    of !== undefined && ts.isIdentifier(of) && of.text === 'process'
  if (ts.isPropertyAccessExpression(node)) return isProcess(node.expression) && node.name.text === 'env'
  if (ts.isElementAccessExpression(node)) {
    return (
      isProcess(node.expression) &&
      ts.isStringLiteralLike(node.argumentExpression) &&
      node.argumentExpression.text === 'env'
    )
  }
  return (
    ts.isVariableDeclaration(node) &&
    isProcess(node.initializer) &&
    ts.isObjectBindingPattern(node.name) &&
    node.name.elements.some(({ propertyName, name, dotDotDotToken }) => {
      const key = propertyName ?? name
      return dotDotDotToken !== undefined || (ts.isIdentifier(key) && key.text === 'env')
    })
  )
}

function roomOf(file: string): (typeof ROOMS)[number] | undefined {
  return ROOMS.find(({ files }) => isOneOf(file, files))
}

function isOneOf(file: string, places: readonly string[]): boolean {
  return places.some(place => (place.endsWith('/') ? file.startsWith(place) : file === place))
}

function readSources(): Sources {
  const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.ts'))
  return Object.fromEntries(files.map(file => [file, readFileSync(join('src', file), 'utf8')]))
}
