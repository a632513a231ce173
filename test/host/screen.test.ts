import { expect, test } from 'vitest'
import { createScreen } from '../../src/host/screen.ts'

test('a line that moves is written over by the next, whichever it is, and is never wider than the terminal', () => {
  let written = ''
  const screen = createScreen(
    text => {
      written += text
    },
    () => 8,
  )
  screen.print('one')
  screen.move('10 %')
  screen.move('20 % of all')
  screen.print('two')
  screen.print('three')
  expect(written.replaceAll('\r\u001b[K', '<')).toBe('one\n<10 %<20 % of<two\nthree\n')
})
