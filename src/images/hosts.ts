/** What nodes know of registries: a folder with a hosts.toml for each, which containerd reads at every pull. */

import { writeFiles } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { messageOf, Problem } from '../lib/problem.ts'

/** A file of a node. */
export interface NodeFile {
  readonly path: string
  readonly content: string
}

/** Where a registry's files are in a node, by the name that images have it by: `localhost:5001`, `docker.io`. */
export function hostsFolder(registry: string): string {
  return `/etc/containerd/certs.d/${registry}`
}

/**
 * Writes files in every node, for root alone.
 *
 * @throws Problem that names each node that did not take them
 */
export async function writeInNodes(
  docker: Docker,
  nodes: readonly string[],
  files: readonly NodeFile[],
): Promise<void> {
  if (files.length === 0) return
  const input = files.map(({ path, content }) => `${path} ${Buffer.from(content).toString('base64')}\n`).join('')
  const written = await Promise.allSettled(nodes.map(node => docker.run(writeFiles(node), { input })))
  const failures = written.flatMap((result, index) =>
    result.status === 'rejected' ? [`${nodes[index]}: ${messageOf(result.reason)}`] : [],
  )
  if (failures.length > 0) throw new Problem(`the nodes cannot be told of registries: ${failures.join('; ')}`)
}
