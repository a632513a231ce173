import { describe, expect, test } from 'vitest'
import { FIGURES, type Figures, failures, growth, markdown, type Results } from './results.ts'

const figures = (more: Partial<Figures> = {}): Figures =>
  ({ ...Object.fromEntries(FIGURES.map(name => [name, 10])), ...more }) as unknown as Figures
const run = { stage: 'nodes', signal: 'SIGINT', target: 'pre', host: 'github' } as const
const all: Results = {
  rows: { results: [{ run, wrong: [] }], of: 1, on: 'Run here.' },
  rounds: { figures: [figures(), figures(), figures()], wrong: [], on: 'Run here.' },
  crowd: {
    atOnce: { jobs: 4, killed: 0, wrong: [], took: [1000, 2000] },
    inARow: { jobs: 5, killed: 1, wrong: [], took: [3000] },
    on: 'Run here.',
  },
  cancel: { loads: [{ busy: 2, removing: [500, 700], over: [2000, 3000], wrong: [] }], on: 'Run here.' },
}

describe('growth', () => {
  test('is from the first round to the last: what the first one leaves for good is none', () => {
    expect(growth([figures({ images: 1 }), figures(), figures()])).toEqual([])
    expect(growth([figures(), figures(), figures({ volumes: 11 })])).toEqual(['volumes grew from 10 to 11'])
  })

  test('is more than the ups and downs of an engine', () => {
    expect(growth([figures(), figures(), figures({ 'file descriptors': 30 })])).toEqual([])
    expect(growth([figures(), figures(), figures({ 'file descriptors': 31 })])).toHaveLength(1)
  })

  test('is none where nothing ran', () => expect(growth([figures()])).toEqual([]))
})

describe('RESULTS.md', () => {
  test('says that all held', () => {
    expect(failures(all)).toEqual([])
    expect(markdown(all)).toContain('All of it held.')
    expect(markdown(all)).toContain('| nodes | 1 of 1 | 0 of 0 |')
    expect(markdown(all)).toContain('| 2 | 2 | 0.5 s to 0.7 s | 2.0 s to 3.0 s |')
  })

  test('says what did not', () => {
    const bad: Results = {
      ...all,
      rows: { results: [{ run, wrong: ['left: container x'] }], of: 2, on: '' },
      cancel: { loads: [{ busy: 2, removing: [2500], over: [9000], wrong: [] }], on: '' },
    }
    expect(failures(bad)).toEqual([
      'nodes, SIGINT to pre on github: left: container x',
      'with 2 busy processes a removal began after 2.5 s',
      'with 2 busy processes a job was over after 9.0 s',
    ])
    expect(markdown(bad)).toContain('- nodes, SIGINT to pre on github: left: container x')
  })

  test('says what did not run', () => {
    expect(markdown({}).match(/Not run\./g)).toHaveLength(4)
    expect(markdown({})).toContain('What ran held.')
    expect(markdown({ ...all, rows: { results: [{ run, wrong: [] }], of: 2, on: '' } })).toContain('What ran held.')
  })
})
