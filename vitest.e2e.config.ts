import { defineConfig } from 'vitest/config'
import { reporters } from './test/reporters.ts'

/** The end-to-end tests: real clusters on the lab's engine, one file at a time. */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.e2e.ts'],
    testTimeout: 10 * 60_000,
    hookTimeout: 10 * 60_000,
    teardownTimeout: 60_000,
    fileParallelism: false,
    ...reporters('e2e', 'verbose'),
  },
})
