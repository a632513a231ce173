import type { Environment } from './host.ts'

/** Whether debug lines are shown: KIND_IN_DIND_DEBUG anywhere, RUNNER_DEBUG where GitHub runs a job with debug logging. */
export function debugIsOn(env: Environment): boolean {
  return [env['KIND_IN_DIND_DEBUG'], env['RUNNER_DEBUG']].some(value => value === '1' || value === 'true')
}
