import { expect, test } from 'vitest'
import { milestone } from '../../src/cluster/create.ts'

test.each([
  [' ✓ Starting control-plane 🕹️', 'Starting control-plane'],
  [' ✓ Preparing nodes 📦 📦 ', 'Preparing nodes'],
  [' • Preparing nodes 📦 📦   ...', undefined],
  ['Creating cluster "shop" ...', undefined],
])('kind says with %j: %s', (line, done) => {
  expect(milestone(line)).toBe(done)
})
