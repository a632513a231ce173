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
  // A pipe waits for the slowest sink and lets go of one that closes. Their ends are given below.
  for (const { running } of sinks) {
    source.stdout.pipe(running.stdin, { end: false })
    running.stdout.resume()
  }
  const imports = sinks.map(({ node, running }) =>
    running.ended.then(
      () => [],
      (error: unknown) => [`${node}: ${messageOf(error)}`],
    ),
  )
  // With no sink left nothing would read the source to its end.
  let isRead = false
  let isGivenUp = false
  const failed = Promise.all(imports).then(failures => {
    isGivenUp = !isRead
    if (isGivenUp) source.end()
    return failures.flat()
  })

  const unreadable = await source.ended.then(
    () => undefined,
    (error: unknown) => messageOf(error),
  )
  isRead = true
  for (const { running } of sinks) {
    // Half a stream must not look whole to containerd.
    if (unreadable === undefined) running.stdin.end()
    else running.end()
  }
  const failures = await failed
  if (unreadable !== undefined && !isGivenUp) {
    throw new Problem(`images: the engine does not give them out: ${unreadable}`)
  }
  if (failures.length > 0) throw new Problem(`images: the import failed in ${failures.join('; ')}`)
  return bytes
}
