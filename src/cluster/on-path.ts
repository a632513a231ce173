/** The kind and the kubectl that are on PATH already. */
import { messageOf } from '../lib/problem.ts'
import { type Argv, CommandFailed, type Runner } from '../lib/run.ts'

/** A program that is asked for its version answers at once, or not at all. Milliseconds. */
const VERSION_LIMIT = 20_000

/** What a program says on stdout; undefined where it is not there, cannot be run or fails. */
async function said(argv: Argv, runner: Runner, debug: (line: string) => void): Promise<string | undefined> {
  try {
    return (await runner.run(argv, { timeout: VERSION_LIMIT })).stdout
  } catch (thrown) {
    if (thrown instanceof CommandFailed && thrown.endedBy === 'abort') throw thrown
    debug(messageOf(thrown))
    return undefined
  }
}

/** What `kind version` says, and the version in it; undefined where there is no kind on PATH that runs. */
export async function kindOnPath(
  runner: Runner,
  debug: (line: string) => void,
): Promise<{ readonly output: string; readonly version: string | undefined } | undefined> {
  const output = await said(['kind', 'version'], runner, debug)
  return output === undefined ? undefined : { output, version: kindVersionIn(output) }
}

/** The version of the kubectl on PATH, such as v1.34.0; undefined where there is none that runs. */
export async function kubectlOnPath(runner: Runner, debug: (line: string) => void): Promise<string | undefined> {
  return kubectlVersionIn(await said(['kubectl', 'version', '--client', '--output=json'], runner, debug))
}

/** `kind v0.33.0 go1.26.1 linux/amd64`, also `kind v0.34.0-alpha+1234 …` for a build of one's own. */
function kindVersionIn(output: string): string | undefined {
  return /^kind (v\d+\.\d+\.\d+\S*)/m.exec(output)?.[1]
}

function kubectlVersionIn(output: string | undefined): string | undefined {
  return /"gitVersion"\s*:\s*"(v[^"]+)"/.exec(output ?? '')?.[1]
}
