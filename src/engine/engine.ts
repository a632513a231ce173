import type { Environment } from '../host/host.ts'
import type { Engine } from '../plan.ts'
import { findEndpoints, surroundings } from './find.ts'
import { waitForEngine } from './wait.ts'

/** Finds the engine and waits until it answers; the log says which and why that one. */
export async function findEngine(
  options: { readonly dockerHost: string | undefined; readonly dockerWait: number },
  world: {
    readonly env: Environment
    readonly signal: AbortSignal
    readonly info: (message: string) => void
    readonly debug: (message: string) => void
  },
): Promise<Engine> {
  const around = surroundings(world.env)
  const endpoints = await findEndpoints(options.dockerHost, around)
  return waitForEngine(endpoints, options.dockerWait, { ...world, resolve: around.resolve })
}
