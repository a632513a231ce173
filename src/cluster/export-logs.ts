import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Docker } from '../engine/docker.ts'
import type { Host } from '../host/host.ts'
import { formatBytes } from '../lib/bytes.ts'
import { messageOf } from '../lib/problem.ts'
import { scrubber } from '../lib/scrub.ts'
import type { Plan } from '../plan.ts'
import { type Collected, collectLogs, type Files } from './collect-logs.ts'

/** How long the export may take, in milliseconds: nodes of a failed start wait for it, and so does their removal. */
const LOGS_LIMIT = 30_000

/**
 * Exports what the cluster's nodes and the engine can tell to a folder, and to the host where it keeps files. Never throws:
 * it happens where something else has failed already, which is what matters.
 *
 * @param folder where to; undefined where nobody would find it there, and only what was collected is wanted
 * @param signal ends it: what has come by then is exported
 * @returns the folder where anything is in it, and what was collected, without secrets
 */
export async function exportLogs(
  docker: Docker,
  plan: Pick<Plan, 'nodes'>,
  folder: string | undefined,
  host: Pick<Host, 'info' | 'debug' | 'warning' | 'keepFiles'>,
  signal: AbortSignal,
): Promise<{ readonly folder: string | undefined; readonly files: Files }> {
  try {
    const collected = await collectLogs(docker, plan, LOGS_LIMIT, signal)
    for (const sentence of collected.missing) host.debug(`Not among the logs: ${sentence}`)
    const files = collected.files.size === 0 ? collected.files : scrubbed(collected)
    if (folder === undefined || files.size === 0) return { folder: undefined, files }
    const bytes = writeLogs(files, folder)
    host.info(`The cluster's logs are in ${folder} (${files.size} files, ${formatBytes(bytes)})`)
    await host.keepFiles(folder, signal)
    return { folder, files }
  } catch (error) {
    host.warning(`The cluster's logs could not be exported: ${messageOf(error)}`)
    return { folder: undefined, files: new Map() }
  }
}

/** What was collected, and a file on what was not, without the cluster's secrets. */
function scrubbed({ files, secrets, missing }: Collected): Files {
  const scrub = scrubber(secrets)
  const all = missing.length === 0 ? [...files] : [...files, ['missing.txt', `${missing.join('\n')}\n`] as const]
  return new Map(all.map(([name, content]) => [name, Buffer.from(scrub(content.toString('utf8')))]))
}

/**
 * Writes files 0600, in folders 0700. Files that are there are replaced.
 *
 * @returns how many bytes they have
 */
function writeLogs(files: Files, folder: string): number {
  let bytes = 0
  for (const [name, content] of files) {
    const path = join(folder, safePath(name))
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(path, content, { mode: 0o600 })
    bytes += content.length
  }
  return bytes
}

/** A path that stays below its folder and that every system and artifact store takes, from a name that a node gave. */
export function safePath(name: string): string {
  const words = name.split('/').map(word => word.replace(/[^A-Za-z0-9._-]/g, '_').slice(0, 200))
  const safe = words.filter(word => !/^\.*$/.test(word))
  return safe.length === 0 ? '_' : safe.join('/')
}
