import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { exportLines, exportPathLine } from '../../src/host/exports.ts'

/** What a shell makes of lines: the value of a variable afterwards. */
function valueIn(shell: string, lines: string, name: string): string {
  return execFileSync(shell, ['-c', `${lines}printf %s "$${name}"`], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { PATH: '/usr/bin:/bin' },
  })
}

const VALUES = [
  '/plain/path',
  '',
  'two words',
  "it's",
  '"$HOME" `id` $(id) \\',
  'two\nlines',
  '{"30080":"docker:32801"}',
  '-n',
  '*',
]

test.each(['bash', 'sh'])('%s gets every value as it is', shell => {
  for (const value of VALUES) expect(valueIn(shell, exportLines({ VALUE: value }), 'VALUE')).toBe(value)
})

test('a name that a shell would run is refused', () => {
  expect(() => exportLines({ 'A=1; id': 'x' })).toThrow(/no name of a variable/)
})

test('a folder goes in front of PATH', () => {
  expect(valueIn('sh', exportPathLine("/it's/bin"), 'PATH')).toBe("/it's/bin:/usr/bin:/bin")
})
