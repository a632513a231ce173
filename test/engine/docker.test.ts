import { expect, test } from 'vitest'
import { dockerAt, EngineLate } from '../../src/engine/docker.ts'
import { CommandFailed, type Runner } from '../../src/lib/run.ts'

/** Every command takes longer than it may. */
const late: Pick<Runner, 'run' | 'try'> = {
  run: async (argv, options) => {
    throw new CommandFailed(argv, { code: 143, stdout: '', stderr: '' }, 'timeout', options?.timeout)
  },
  try: (argv, options) => late.run(argv, options),
}

test.each([
  [['volume', 'ls', '--quiet'], 1500, 'docker volume ls within 1.5s'],
  [['rm', '--force', 'one'], 20_000, 'docker rm within 20.0s'],
  [['ps'], undefined, 'docker ps within 2m00s'],
])('an engine that has not done %s in time is named, with the time', async (args, timeout, what) => {
  const docker = dockerAt({ env: {}, aroundProxy: {} }, late as Runner)
  for (const how of ['run', 'try'] as const) {
    const error = await docker[how](args, timeout === undefined ? {} : { timeout }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EngineLate)
    expect(error).toHaveProperty('message', `the engine did not finish ${what}; look at its log and its load`)
  }
})
