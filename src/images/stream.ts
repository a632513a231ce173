import type { Writable } from 'node:stream'
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
  for (const { running } of sinks) running.stdout.resume()

  let bytes = 0
  let isWanted = true
  for await (const chunk of source.stdout as AsyncIterable<Buffer>) {
    bytes += chunk.length
    await Promise.all(sinks.map(({ running }) => write(running.stdin, chunk)))
    isWanted = sinks.some(({ running }) => !running.stdin.destroyed)
    if (!isWanted) break
  }
  if (!isWanted) source.end()
  const unreadable = await source.ended.then(
    () => undefined,
    (error: unknown) => messageOf(error),
  )
  for (const { running } of sinks) {
    // Half a stream must not look whole to containerd.
    if (unreadable === undefined) running.stdin.end()
    else running.end()
  }
  const failures = await Promise.all(
    sinks.map(({ node, running }) =>
      running.ended.then(
        () => [],
        (error: unknown) => [`${node}: ${messageOf(error)}`],
      ),
    ),
  )
  if (unreadable !== undefined && isWanted) {
    throw new Problem(`images: the engine does not give them out: ${unreadable}`)
  }
  if (failures.flat().length > 0) throw new Problem(`images: the import failed in ${failures.flat().join('; ')}`)
  return bytes
}

/**
 * Writes and waits until the sink takes more, or is gone. Not stream.pipe: with several sinks it may wait for ever for one
 * that closed.
 */
function write(sink: Writable, chunk: Buffer): Promise<void> | undefined {
  if (sink.destroyed || sink.write(chunk)) return undefined
  return new Promise(resolve => {
    const done = (): void => {
      sink.off('drain', done).off('close', done)
      resolve()
    }
    sink.on('drain', done).on('close', done)
  })
}
