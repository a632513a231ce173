import { expect, test } from 'vitest'
import { loadedFigures, loadedLine } from '../../src/images/loaded.ts'

const loaded = { image: 'app:ci', had: 0, brought: 2, size: 228e6, sent: 24e6, took: 3140 }

test.each([
  ['a layer was there', {}, 'app:ci: loaded into 2 nodes, sent 24 MB of 456 MB in 3.1s'],
  ['one node had it', { had: 1, brought: 1 }, 'app:ci: loaded into 1 node, sent 24 MB of 228 MB in 3.1s, 1 had it'],
  ['its source tells no sizes', { size: undefined, sent: undefined }, 'app:ci: loaded into 2 nodes in 3.1s'],
  ['nobody counted what was sent', { sent: undefined }, 'app:ci: loaded into 2 nodes, 228 MB each in 3.1s'],
  ['it was there', { had: 2, brought: 0 }, 'app:ci: every node had it'],
])('tells of an image where %s', (_, given, line) => {
  expect(loadedLine({ ...loaded, ...given })).toBe(line)
})

test('has the same for the summary', () => {
  expect(loadedFigures({ ...loaded, had: 1, brought: 1 })).toEqual({
    reference: 'app:ci',
    how: 'loaded into 1 node, 1 had it',
    bytes: 228e6,
    sent: 24e6,
    ms: 3140,
  })
  expect(loadedFigures({ ...loaded, had: 2, brought: 0 })).toEqual({
    reference: 'app:ci',
    how: 'every node had it',
    bytes: 228e6,
  })
})
