import { expect, test } from 'vitest'
import { builderMarkdown } from './builder-report.ts'

test('a line for each number of replicas, with medians and how they compare', () => {
  const builds = { ours: [4000, 9000, 5000], docker: [2000, 2600, 2500] }
  const page = builderMarkdown([{ count: 2, ready: { ours: 1840, driver: 20_300 }, builds, pods: 1 }], 'Two cores.')
  expect(page).toContain('\n\nTwo cores.\n\n')
  expect(page).toContain('\n| 2 | 1.8 s | 20.3 s | 5.0 s | 2.5 s | 2.00 | 1 |\n')
  expect(page).toContain('Medians of 3;')
})
