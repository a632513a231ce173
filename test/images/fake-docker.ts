import type { Docker } from '../../src/engine/docker.ts'
import type { ResolveWorld } from '../../src/images/resolve.ts'
import type { Result } from '../../src/lib/run.ts'

export const ok = (stdout = ''): Result => ({ code: 0, stdout, stderr: '' })
export const no = (stderr: string, stdout = ''): Result => ({ code: 1, stdout, stderr })

/** A docker that gives these answers, one after the other, and notes what it was asked. */
export function dockerOf(...answers: Result[]) {
  const asked: string[] = []
  const docker = {
    try: async (args: readonly string[]) => {
      asked.push(args.filter(word => !word.startsWith('--')).join(' '))
      return answers.shift() ?? ok()
    },
  } as Partial<Docker> as Docker
  return { docker, asked }
}

/** Surroundings in which nothing is but these files and variables. */
export function around(
  env: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): ResolveWorld['around'] {
  return { env, readFile: path => files[path], exists: path => path in files }
}

/** A world that notes what is said and how long is waited, and waits for nothing. */
export function worldOf(given: Partial<ResolveWorld> = {}) {
  const said: string[] = []
  const slept: number[] = []
  const world: ResolveWorld = {
    engine: { address: 'tcp://docker:2375', architecture: 'arm64' },
    around: around(),
    elsewhere: async () => [],
    info: line => void said.push(line),
    warning: line => void said.push(`warning: ${line}`),
    span: async (_, work) => work(),
    ...{ mirrors: [], folder: '/nowhere' },
    sleep: async ms => void slept.push(ms),
    ...given,
  }
  return { world, said, slept }
}
