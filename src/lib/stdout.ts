import { AsyncLocalStorage } from 'node:async_hooks'

const listeners = new AsyncLocalStorage<(text: string) => void>()
let installed = false

/**
 * Runs work and takes what it, and only it, writes to stdout. @actions/tool-cache writes GitHub's workflow commands
 * (`::debug::…`) there on every host, where Buildkite and a terminal would show them as they are.
 *
 * What else goes on at the same time is told apart by its asynchronous context, so it writes as ever; so does `take`.
 */
export function takingStdout<T>(take: (text: string) => void, work: () => T): T {
  install()
  return listeners.run(take, work)
}

/** Stays for good, once made: work that outlived its deadline may still have something to say. */
function install(): void {
  if (installed) return
  installed = true
  const { stdout } = process
  const write = stdout.write
  stdout.write = ((...args: Parameters<typeof write>): boolean => {
    const take = listeners.getStore()
    if (take === undefined) return write.apply(stdout, args)
    listeners.exit(() => take(String(args[0])))
    const callback = args.find(arg => typeof arg === 'function')
    if (callback) process.nextTick(callback as () => void)
    return true
  }) as typeof write
}
