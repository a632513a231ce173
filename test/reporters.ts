import type { ViteUserConfig } from 'vitest/config'

/**
 * How results are shown, and in TEST_RESULTS (a folder) also counted as NAME.json, for .ci/run.
 *
 * @param shown `verbose` prints each test as it ends
 */
export function reporters(name: string, shown: 'default' | 'verbose' = 'default'): NonNullable<ViteUserConfig['test']> {
  const folder = process.env['TEST_RESULTS']
  return folder
    ? { reporters: [shown, 'json'], outputFile: { json: `${folder}/${name}.json` } }
    : { reporters: [shown] }
}
