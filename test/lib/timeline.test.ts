import { expect, test } from 'vitest'
import { closed, createTimeline } from '../../src/lib/timeline.ts'

/** A clock that is set by hand. */
function recorder() {
  const time = { now: 0 }
  return { time, timeline: createTimeline(() => time.now) }
}

test('stages that go on beside each other are told apart', async () => {
  const { time, timeline } = recorder()
  const slow = timeline.begin('slow')
  time.now = 10
  await timeline.span('quick', async () => {
    time.now = 15
  })
  time.now = 40
  slow()
  expect(timeline.spans()).toEqual([
    { name: 'slow', start: 0, end: 40, failed: false },
    { name: 'quick', start: 10, end: 15, failed: false },
  ])
})

test('a stage that fails is recorded, and its error goes on', async () => {
  const { time, timeline } = recorder()
  const work = timeline.span('broken', async () => {
    time.now = 7
    throw new Error('no')
  })
  await expect(work).rejects.toThrow('no')
  expect(timeline.spans()).toEqual([{ name: 'broken', start: 0, end: 7, failed: true }])
})

test('a stage ends once', () => {
  const { time, timeline } = recorder()
  const end = timeline.begin('a')
  time.now = 5
  end()
  time.now = 9
  end('failed')
  expect(timeline.spans()).toEqual([{ name: 'a', start: 0, end: 5, failed: false }])
})

test('what goes on at the end did not get through', () => {
  expect(closed([{ name: 'a', start: 1, end: undefined, failed: false }], 9)).toEqual([
    { name: 'a', start: 1, end: 9, failed: true },
  ])
})
