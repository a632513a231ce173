import type { Runner, Running } from './run.ts'

/** A runner that knows what it still runs. */
export interface WatchedRunner extends Runner {
  /** Resolves when every command that was started has ended. */
  settled(): Promise<void>
}

/**
 * Watches a runner. Work that failed in one command leaves others behind, each in a process group of its own that would
 * outlive this process; whoever ends them waits here until they are gone.
 */
export function watchRunner(runner: Runner): WatchedRunner {
  const running = new Set<Promise<unknown>>()
  const watch = <T>(ended: Promise<T>): Promise<T> => {
    const gone = ended.then(
      () => {},
      () => {},
    )
    running.add(gone)
    void gone.then(() => running.delete(gone))
    return ended
  }
  return {
    run: (argv, options) => watch(runner.run(argv, options)),
    try: (argv, options) => watch(runner.try(argv, options)),
    start: (argv, options): Running => {
      const started = runner.start(argv, options)
      watch(started.ended)
      return started
    },
    settled: async () => {
      while (running.size > 0) await Promise.all(running)
    },
  }
}
