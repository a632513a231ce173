/** Watches of the API server: until something is so, with one deadline and no polling. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type KubeConfig, Watch } from '@kubernetes/client-node'
import { messageOf } from '../lib/problem.ts'

/** Something that must be, and where to watch for it. */
export interface Condition {
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  /** True when what was seen fulfils it, by name. */
  readonly met: (seen: ReadonlyMap<string, unknown>) => boolean
}

/** Watches until the condition is met. A watch without a resource version begins with what is there. */
export async function watchUntil(
  kubeconfig: KubeConfig,
  condition: Condition,
  signal: AbortSignal,
  debug: (message: string) => void,
): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const met = await watchOnce(kubeconfig, condition, signal).catch(error => {
      if (signal.aborted) throw error
      debug(`watching ${condition.path}: ${messageOf(error)}`)
      return false
    })
    if (met) return
    // The server ends watches now and then; one that is refused must not become a busy loop.
    await sleep(200, undefined, { signal })
  }
}

async function watchOnce(kubeconfig: KubeConfig, condition: Condition, signal: AbortSignal): Promise<boolean> {
  const seen = new Map<string, unknown>()
  return new Promise<boolean>((resolve, reject) => {
    let controller: AbortController | undefined
    const finish = (settle: () => void): void => {
      signal.removeEventListener('abort', onAbort)
      settle()
      controller?.abort()
    }
    const onAbort = (): void => finish(() => reject(signal.reason))
    signal.addEventListener('abort', onAbort, { once: true })
    new Watch(kubeconfig)
      .watch(
        condition.path,
        condition.query,
        (phase, object: { metadata?: { name?: string } }) => {
          const name = object.metadata?.name
          if (name === undefined) return
          if (phase === 'DELETED') seen.delete(name)
          else seen.set(name, object)
          if (condition.met(seen)) finish(() => resolve(true))
        },
        error => finish(() => (error ? reject(error) : resolve(false))),
      )
      .then(
        opened => {
          controller = opened
          if (signal.aborted) opened.abort()
        },
        error => finish(() => reject(error)),
      )
  })
}
