import { setTimeout as sleep } from 'node:timers/promises'
import { kubeletRestarts } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { formatDuration } from '../lib/duration.ts'

/** How often a kubelet ends by itself before nobody waits for it any more: each time takes a second or two. */
const MOST = 30

/** How long to leave the nodes alone, a silent engine too, how long one answer may take, and all of them be missing, in milliseconds. */
const TIMES = { pause: 5000, again: 250, answer: 15_000, silence: 60_000 }

/**
 * Watches a creation for what makes it hopeless. A kubelet that ends again and again: kubeadm would wait four minutes for
 * it, while systemd starts it only when kubeadm has written its configuration, so that a healthy one does not end at all. An
 * engine that does not answer any more: kind would wait for it without an end.
 *
 * @param signal ends the watch
 * @returns a clause that says what it is; undefined at the signal
 */
export async function hopeless(
  docker: Docker,
  nodes: readonly string[],
  signal: AbortSignal,
  times = TIMES,
): Promise<string | undefined> {
  let heard = performance.now()
  let isSilent = false
  while (!signal.aborted) {
    // One that has let the time for its answer pass is asked again at once.
    await sleep(isSilent ? times.again : times.pause, undefined, { signal }).catch(() => {})
    if (signal.aborted) break
    const counts = await Promise.all(nodes.map(node => restarts(docker, node, times.answer)))
    isSilent = counts.every(count => count === undefined)
    if (!isSilent) heard = performance.now()
    const node = nodes.find((_, index) => (counts[index] ?? 0) >= MOST)
    if (node !== undefined) return `the kubelet on ${node} does not start`
    const silence = performance.now() - heard
    if (silence >= times.silence) {
      return `the engine has not answered for ${formatDuration(silence)}; look at its log and its load`
    }
  }
  return undefined
}

/** 0 where the node does not say, or is not there yet; undefined where the engine does not answer. */
async function restarts(docker: Docker, node: string, timeout: number): Promise<number | undefined> {
  const said = await docker.try(kubeletRestarts(node), { timeout }).catch(() => undefined)
  return said && (Number(said.stdout.trim()) || 0)
}
