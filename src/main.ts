import { dirname, join } from 'node:path'
import { type Entry, openHost } from './host/open.ts'
import { messageOf } from './lib/problem.ts'
import { createRunner } from './lib/run.ts'
import { perform } from './perform.ts'
import { STORIES } from './stories.ts'

/** Runs the program as one of its entries and ends the process. The only place that touches the process itself. */
export async function main(entry: Entry): Promise<never> {
  let code = entry === 'post' ? 0 : 1
  process.noDeprecation = true // what our packages ought not to call is no news for a job's log
  // A reader of the log that is gone must not end a removal half-way.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})
  try {
    const opened = openHost(entry, process.env, process.argv.slice(2), createRunner({ env: process.env }))
    if (opened.verb === 'help') {
      process.stdout.write(`${opened.usage}\n`)
      code = 0
    } else {
      const { verb, host } = opened
      code = await perform(verb, {
        host,
        stories: STORIES,
        self: { node: process.execPath, cli: join(dirname(process.argv[1] ?? ''), 'cli.js') },
        runner: signal => createRunner({ env: process.env, signal, debug: host.debug }),
        now: Date.now,
        listen: hear => {
          for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, hear)
          process.on('uncaughtException', hear)
        },
        exit: process.exit,
      })
    }
  } catch (thrown) {
    process.stderr.write(`${messageOf(thrown)}\n`)
  }
  await Promise.all([process.stdout, process.stderr].map(stream => new Promise(done => stream.write('', done))))
  // Open sockets and timers hold nothing up.
  return process.exit(code)
}
