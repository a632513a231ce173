/** An engine that answers commands, for tests. */
import type { Docker } from '../src/engine/docker.ts'
import { CommandFailed, type Result } from '../src/lib/run.ts'

export const ok = (stdout = ''): Result => ({ code: 0, stdout, stderr: '' })
export const no = (stderr: string): Result => ({ code: 1, stdout: '', stderr })

/** A docker that asks this instead of an engine. */
export function dockerThat(answer: (args: readonly string[]) => Promise<Result>): Docker {
  return {
    try: answer,
    run: async args => {
      const result = await answer(args)
      if (result.code !== 0) throw new CommandFailed(['docker', ...args], result)
      return result
    },
    start: () => {
      throw new Error('nothing is piped')
    },
  }
}

/** An engine that answers by the first words of a command, and notes every command. */
export function answeringEngine(answers: Readonly<Record<string, Result>>) {
  const asked: string[] = []
  const answer = async (args: readonly string[]): Promise<Result> => {
    asked.push(args.join(' '))
    const found = Object.keys(answers).find(start => args.join(' ').startsWith(start))
    return found === undefined ? ok() : (answers[found] as Result)
  }
  return { docker: dockerThat(answer), asked, made: () => asked.filter(line => line.startsWith('network create')) }
}
