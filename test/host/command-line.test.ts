import { expect, test } from 'vitest'
import { COMMANDS } from '../../src/commands.ts'
import { readCommandLine, usage } from '../../src/host/command-line.ts'
import { OPTIONS, parse } from '../../src/options.ts'

const given = (line: string): unknown => readCommandLine(line.split(' ')).given
const refused = (line: string): (() => unknown) => {
  return () =>
    parse(readCommandLine(line.split(' ')).given, { readFile: () => undefined, refuseVersion: () => undefined })
}

test.each([
  ['up', {}],
  ['up --workers 1', { workers: '1' }],
  ['up --workers=1 --name x', { workers: '1', name: 'x' }],
  ['--workers 1 up', { workers: '1' }],
  ['up --images a:1 --images b:2,c:3', { images: ['a:1', 'b:2,c:3'] }],
  ['up --keep', { keep: true }],
  ['up --keep --workers 1', { keep: true, workers: '1' }],
  ['up --keep=false', { keep: 'false' }],
  ['down', {}],
  ['down --name x', { name: 'x' }],
  ['load a:1 b:2', { images: ['a:1', 'b:2'] }],
  ['load --images a:1 b:2 --nodes worker --name x', { images: ['a:1', 'b:2'], nodes: ['worker'], name: 'x' }],
])('%s', (line, expected) => {
  expect(given(line)).toEqual(expected)
})

test('what parse makes of flags is what it makes of any host’s options', () => {
  const options = parse(readCommandLine(['up', '--ports', '30080', '--ports', '1:30443', '--keep=false']).given, {
    readFile: () => undefined,
    refuseVersion: () => undefined,
  })
  expect(options.ports.map(port => port.node)).toEqual([30080, 30443])
  expect(options.keep).toBe(false)
})

test.each([
  ['up --worker 1', 'worker: no such option; workers is meant?'],
  ['up --worker=1', 'worker: no such option; workers is meant?'],
  ['up --workers', 'workers: a value is missing'],
  ['up --workers --keep', 'workers: "--keep" is not a whole number'],
  ['up app:ci', '"app:ci" belongs to no flag'],
  ['down app', '"app" means nothing to down, which takes flags only'],
  ['start', 'kind-in-dind: there is no command "start"; there are up, down, load, logs and status'],
  ['--workers 1', 'a command is missing; there are up, down, load, logs and status'],
  ['down --workers 1', '--workers means nothing to down; it takes --name, --stale, --docker-host, --docker-wait only'],
])('%s is refused', (line, message) => {
  expect(refused(line)).toThrow(message)
})

test.each(['--help', '-h', 'help', 'up --help', 'up --worker 1 --help'])('%s shows the help', line => {
  expect(readCommandLine(line.split(' ')).verb).toBe('help')
})

test('the help has every option with its sentence', () => {
  const help = usage(undefined).replace(/\s+/g, ' ')
  for (const option of OPTIONS) {
    expect(help).toContain(` --${option.name} `)
    expect(help).toContain(option.sentence)
  }
})

test('the help has no line that a terminal breaks, but for words that are longer', () => {
  const lines = COMMANDS.flatMap(({ name }) => usage(name).split('\n'))
  expect(lines.filter(line => line.length > 124)).toEqual([])
})

test('the help of each command says its exit codes', () => {
  for (const { name } of COMMANDS) expect(usage(name)).toContain('The exit code is 0, 1 after a failure, and 128 + n')
})

test('the help of one command has that command’s options alone', () => {
  const { verb, given } = readCommandLine(['load', '--help'])
  expect([verb, given]).toEqual(['help', { command: 'load' }])
  expect(usage('load')).toContain('kind-in-dind load IMAGE...')
  expect(usage('load')).toContain('--nodes VALUE,... (may be repeated)')
  expect(usage('load')).not.toContain('--workers')
})
