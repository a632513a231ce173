import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { inspectContainer } from './containers.ts'
import type { Docker } from './docker.ts'

/** What tells a container's id from inside. */
export interface Traces {
  readonly hostname: string
  /** The text of /proc/self/mountinfo. */
  readonly mountinfo: string
}

/**
 * The ids under which an engine may know the container that this process is in, the surest first. Docker mounts
 * /etc/hostname from a folder with the id in its name; the host name is the short id unless somebody chose another.
 */
export function containerIds({ hostname, mountinfo }: Traces): string[] {
  const mounted = [...mountinfo.matchAll(/\/containers\/([0-9a-f]{64})\//g)].map(match => match[1] ?? '')
  const named = /^[0-9a-f]{12}$/.test(hostname) ? [hostname] : []
  return [...new Set([...mounted, ...named.filter(short => !mounted.some(id => id.startsWith(short)))])]
}

/**
 * Finds the step's own container on the engine: then the two are siblings, and the step can join the cluster's network.
 *
 * @returns the id of the container whose network this process has; undefined where the engine does not know it, or where
 * it has the machine's own network and reaches the published ports anyway
 */
export async function findOwnContainer(docker: Docker, traces: Traces = readTraces()): Promise<string | undefined> {
  for (const id of containerIds(traces)) {
    const result = await docker.try(inspectContainer(id))
    if (result.code !== 0) continue
    const found = JSON.parse(result.stdout) as { readonly id: string; readonly mode: string }
    if (found.mode === 'host') return undefined
    // Docker's --network=container:ID: the network is another container's.
    return found.mode.startsWith('container:') ? found.mode.slice('container:'.length) : found.id
  }
  return undefined
}

function readTraces(): Traces {
  try {
    return { hostname: hostname(), mountinfo: readFileSync('/proc/self/mountinfo', 'utf8') }
  } catch {
    return { hostname: hostname(), mountinfo: '' }
  }
}
