import { type Docker, importImages, saveImages } from '../engine/docker.ts'
import { messageOf, Problem } from '../lib/problem.ts'

/**
 * Streams images from the engine into every node: one read of the engine feeds all nodes. A node that fails does not
 * hold up the others.
 *
 * @returns bytes read from the engine
 * @throws Problem that names each node whose import failed
 */
export async function streamImages(
  docker: Docker,
  references: readonly string[],
  nodes: readonly string[],
): Promise<number> {
  if (references.length === 0) return 0
  const source = docker.start(saveImages(references))
  const sinks = nodes.map(node => ({ node, running: docker.start(importImages(node)) }))
  let bytes = 0
  source.stdout.on('data', (chunk: Buffer) => {
    bytes += chunk.length
  })
  // A pipe waits for the slowest sink and lets go of one that closes. The ends are ours to give: see below.
  for (const { running } of sinks) {
    source.stdout.pipe(running.stdin, { end: false })
    running.stdout.resume()
  }

  try {
    await source.ended
  } catch (error) {
    // Half a stream must not look whole to containerd.
    for (const { running } of sinks) running.end()
    await Promise.allSettled(sinks.map(({ running }) => running.ended))
    throw new Problem(`images: the engine does not give them out: ${messageOf(error)}`)
  }
  for (const { running } of sinks) running.stdin.end()
  const failures: string[] = []
  await Promise.all(
    sinks.map(({ node, running }) =>
      running.ended.catch((error: unknown) => failures.push(`${node}: ${messageOf(error)}`)),
    ),
  )
  if (failures.length > 0) throw new Problem(`images: the import failed in ${failures.join('; ')}`)
  return bytes
}
