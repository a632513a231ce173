import { once } from 'node:events'
import { type Docker, importImages, saveImages } from '../engine/docker.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Running } from '../lib/run.ts'

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
  const live = new Set(sinks.map(({ running }) => running))
  for (const { running } of sinks) running.stdin.on('error', () => live.delete(running))
  for (const { running } of sinks) running.stdout.resume()

  let bytes = 0
  for await (const chunk of source.stdout as AsyncIterable<Buffer>) {
    bytes += chunk.length
    await Promise.all([...live].map(running => write(running, chunk, () => live.delete(running))))
  }
  const saved = await source.ended.catch((error: unknown) => error as Error)
  if (saved instanceof Error) {
    // A half stream must not look whole to containerd.
    for (const { running } of sinks) running.end()
    await Promise.allSettled(sinks.map(({ running }) => running.ended))
    throw new Problem(`images: the engine does not give them out: ${saved.message}`)
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

/** Writes with back pressure; a sink that closes meanwhile is given up. */
async function write(running: Running, chunk: Buffer, gone: () => void): Promise<void> {
  if (running.stdin.destroyed) return gone()
  if (running.stdin.write(chunk)) return
  await Promise.race([once(running.stdin, 'drain'), once(running.stdin, 'close')]).catch(gone)
}
