/** One job that installs kind, as a process: install.test.ts starts several at once. Its report is one line of JSON. */
import { installKind } from '../../src/cluster/install.ts'
import { createRunner } from '../../src/lib/run.ts'

const [url = '', folder = ''] = process.argv.slice(2)
const lines: string[] = []
const say = (line: string): void => void lines.push(line)
const { path } = await installKind({
  version: { kind: 'pinned' },
  url,
  runner: createRunner({ env: process.env }),
  log: { info: say, debug: () => {}, warning: say },
  now: Date.now,
  platform: { os: 'linux', arch: 'x64' },
  cacheFolder: process.env['RUNNER_TOOL_CACHE'],
  folder,
})
process.stdout.write(`${JSON.stringify({ path, lines })}\n`)
