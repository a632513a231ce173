/** What happens on an engine, as it happens. */
import { createInterface } from 'node:readline'
import type { Argv } from '../../src/lib/run.ts'
import { names, runner } from './lab.ts'

/** https://docs.docker.com/reference/api/engine/: GET /events, as far as it is read here. */
export interface EngineEvent {
  /** container, network, volume, image. */
  readonly Type: string
  /** create, start, kill, destroy, `exec_start: ` with the command. */
  readonly Action: string
  readonly Actor: { readonly ID: string; readonly Attributes: Readonly<Record<string, string>> }
}

export type Matches = (event: EngineEvent) => boolean

export interface Watch {
  /** Everything that happened since the watch began. */
  readonly events: readonly EngineEvent[]
  /** The first event of its kind, which may have happened already. */
  first(matches: Matches): Promise<EngineEvent>
  end(): Promise<void>
}

/**
 * Watches an engine from now on.
 *
 * @param program the docker CLI at it; at the lab's by default
 */
export function watchEngine(program: Argv = [names.tools.docker]): Watch {
  const events: EngineEvent[] = []
  const waiting = new Set<() => void>()
  const since = (Date.now() / 1000).toFixed(3)
  const running = runner.start([...program, ...['events', '--since', since, '--format', '{{json .}}']])
  createInterface({ input: running.stdout }).on('line', line => {
    events.push(JSON.parse(line) as EngineEvent)
    for (const look of waiting) look()
  })
  return {
    events,
    first: matches =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const found = events.find(matches)
          if (found === undefined) return
          waiting.delete(look)
          resolve(found)
        }
        waiting.add(look)
        look()
        running.ended.catch(reject)
      }),
    end: async () => {
      running.end()
      await running.ended.catch(() => {})
    },
  }
}
