import { describe, expect, test } from 'vitest'
import { askNode, lackingLayers, parseNodeContent } from '../../src/images/node-content.ts'
import { chainIds } from '../../src/images/oci.ts'

const MARK = '-- kind-in-dind --'
const id = (letter: string): string => `sha256:${letter.repeat(64)}`

describe('what a node has', () => {
  test('is read from what its containerd prints', () => {
    const images = [
      { id: id('a'), repoTags: ['docker.io/library/app:ci', 'docker.io/library/app:2'], repoDigests: [] },
      { id: id('b'), repoTags: [], repoDigests: [`docker.io/library/web@${id('c')}`] },
    ]
    const content = parseNodeContent(
      [
        `${JSON.stringify({ images }, undefined, 2)}\n`,
        `\nREF TYPE DIGEST SIZE PLATFORMS LABELS\ndocker.io/library/app:ci application/x ${id('d')} 1 MiB linux/amd64 -\n${id('a')} application/x ${id('d')} 1 MiB\n`,
        '\noverlayfs\n',
        `\nKEY PARENT KIND      \n729c ${id('e')} Active    \n${id('e')}   Committed \n${id('f')} ${id('e')} Committed \n`,
        `\n${id('a')}\n${id('d')}\n`,
      ].join(MARK),
    )
    expect(content.images).toEqual(
      new Map([
        ['docker.io/library/app:ci', new Set([id('a'), id('d')])],
        ['docker.io/library/app:2', new Set([id('a')])],
        [`docker.io/library/web@${id('c')}`, new Set([id('b')])],
      ]),
    )
    expect(content.snapshotter).toBe('overlayfs')
    expect(content.snapshots).toEqual(new Set([id('e'), id('f')]))
    expect(content.blobs).toEqual(new Set([id('a'), id('d')]))
  })

  test('is nothing where nothing is there', () => {
    const content = parseNodeContent(['{"images":[]}\n', 'REF\n', 'native\n', 'KEY PARENT KIND\n', ''].join(MARK))
    expect(content).toEqual({ images: new Map(), snapshotter: 'native', snapshots: new Set(), blobs: new Set() })
  })

  test('is asked for in one call, which takes the first snapshotter that the configuration names', () => {
    expect(askNode('one').slice(0, 4)).toEqual(['exec', 'one', 'sh', '-ec'])
  })
})

test('a layer counts as there only where it lies on what it needs', () => {
  const layers = [id('a'), id('b'), id('a')]
  const [first = '', second = ''] = chainIds(layers)
  const lacking = (...snapshots: string[]): unknown => [
    ...lackingLayers(layers, { images: new Map(), blobs: new Set(), snapshotter: '', snapshots: new Set(snapshots) }),
  ]
  expect(first).toBe(id('a'))
  expect(lacking()).toEqual([id('a'), id('b')])
  expect(lacking(first)).toEqual([id('b'), id('a')])
  expect(lacking(first, second)).toEqual([id('a')])
  expect(lacking(...chainIds(layers))).toEqual([])
})
