import { defineConfig } from 'vitest/config'
import { reporters } from './test/reporters.ts'

/**
 * The unit tests: no engine, no network.
 *
 * package.json holds vite back at 8.3: 8.4.0 names an optional package, napi-windows-process-start-time,
 * that npm did not find when this was written, and `npm ci` refuses a lock file that lacks it.
 */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/e2e/**'],
    // One more than the smallest machine has cores: many tests wait for processes.
    maxWorkers: 3,
    // A machine that builds clusters beside them is slow; a test that hangs still ends.
    testTimeout: 30_000,
    ...reporters('unit'),
  },
})
