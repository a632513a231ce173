import { expect, test } from 'vitest'
import { chooseNodes, parseLoad, parseLogs } from '../src/commands.ts'

test('load takes images, nodes and a name', () => {
  expect(parseLoad({ images: 'app:ci\ndb:1, cache:2', nodes: ['worker'], name: 'x' })).toEqual({
    images: ['app:ci', 'db:1', 'cache:2'],
    nodes: ['worker'],
    name: 'x',
  })
})

test.each([
  [{}, 'images: none is named; say which, such as app:ci'],
  [{ images: ' \n' }, 'images: none is named'],
  [{ images: 'APP' }, 'images: "APP" is not an image reference'],
  [{ images: 'app:ci', node: 'x' }, 'node: no such option; nodes is meant?'],
])('load refuses %j', (given, message) => {
  expect(() => parseLoad(given)).toThrow(message)
})

test.each([
  [{}, undefined],
  [{ 'logs-dir': [] }, undefined],
  [{ 'logs-dir': ['out'], name: 'x' }, 'out'],
  [{ 'logs-dir': 'my out' }, 'my out'],
])('logs takes a folder or none: %j', (given, logsDir) => {
  expect(parseLogs(given)).toEqual({ logsDir, name: 'name' in given ? 'x' : undefined })
})

test('logs refuses two folders', () => {
  expect(() => parseLogs({ 'logs-dir': ['a', 'b'] })).toThrow('logs-dir: one folder is enough, and there are "a", "b"')
})

const nodes = ['c-control-plane', 'c-worker', 'c-worker2']

test.each([
  [[], nodes],
  [['c-worker2'], ['c-worker2']],
  [
    ['worker', 'control-plane'],
    ['c-worker', 'c-control-plane'],
  ],
])('nodes %j', (wanted, chosen) => {
  expect(chooseNodes(wanted, nodes, 'c')).toEqual(chosen)
})

test('a node that is not there is refused with those that are', () => {
  expect(() => chooseNodes(['worker3'], nodes, 'c')).toThrow(
    'nodes: there is no node "worker3"; there are c-control-plane, c-worker, c-worker2',
  )
})
