/** The few lines out of thousands that say why something failed. Pure. */
import { scrubber } from '../lib/scrub.ts'
import type { Files } from './collect-logs.ts'
import { withoutPreemption } from './pods.ts'

/** What stands around an error and does not help: progress, kubeadm's advice for people on the machine, stack traces. */
const NOISE = [
  /^I\d{4} /,
  /^W\d{4} .*(deprecated|Ignored configuration document)/,
  /^\s+\S+\.(go|s):\d+$/,
  /^[\w./-]+\.[\w.()*[\]-]+$/,
  /^Unfortunately, an error has occurred/,
  /^If you are on a systemd-powered system/,
  /^A control plane component may have crashed/,
  /^To troubleshoot, list all containers/,
  /^Here is one example how/,
  /^\s+(- |Once you have found)/,
  /^\s*[•✓✗] /u,
  /^\s*$/,
]

/**
 * What kind said when it failed: its own error, then what the command in the node said last.
 *
 * @param stderr all that it said
 */
export function kindFailure(stderr: string): string {
  const lines = stderr.trim().split(/\r?\n/)
  const start = lines.findLastIndex(line => line.startsWith('ERROR: '))
  const error = start === -1 ? undefined : lines[start]
  const output = lines.slice(start + 1)
  const useful = output
    .map(line => line.replace(/^Command Output: /, ''))
    .filter(line => !NOISE.some(noise => noise.test(line)))
  // The command can be a page of arguments.
  const short = error?.replace(/^ERROR: /, '').replace(/(command "[^" ]+(?: [^" ]+){0,2})[^"]*(?=")/, '$1 …')
  return scrubber([])([...(short === undefined ? [] : [short]), ...useful.slice(-6)].join('\n'))
}

/** Why kubelets that end again and again do so, a line for each reason. */
export function kubeletFailures(files: Files, nodes: readonly string[]): string[] {
  return nodes.flatMap(node => {
    const last = linesOf(files, `${node}/kubelet.log`).slice(-40)
    if (!last.some(line => /kubelet\.service: Failed with result/.test(line))) return []
    const said = last.flatMap(line => /kubelet\[\d+\]: (?:[EF]\d{4} \S+ +\d+ \S+\] )(.+)/.exec(line)?.[1] ?? [])
    const reasons = [...new Set(said)].slice(-2)
    return reasons.map(reason => `the kubelet on ${node} ends again and again: ${reason}`)
  })
}

/** What a cluster whose API server answers says is wrong: nodes and pods that are not ready, and the last warnings. */
export function whatIsWrong(files: Files): string[] {
  const notReady = linesOf(files, 'not-ready.txt').filter(line => /^(node|pod) /.test(line))
  const warnings = linesOf(files, 'events.txt').filter(line => isNews(line, notReady))
  const lines = [...notReady.slice(0, 10), ...warnings.slice(-5)]
  return lines.map(line => withoutPreemption(line.replace(/\s{2,}/g, '  ')).slice(0, 400))
}

/** Whether an event is a warning that a job does not know or has not got over: namespace, age, type, reason, object, message. */
function isNews(event: string, notReady: readonly string[]): boolean {
  const [, , type, reason, object = ''] = event.split(/\s+/)
  // A job that runs on an engine with cgroup v1 has to.
  if (type !== 'Warning' || reason === 'CgroupV1') return false
  // While the first node starts, no pod has a place.
  return reason !== 'FailedScheduling' || notReady.some(line => line.includes(object.replace(/^pod\//, '')))
}

function linesOf(files: Files, name: string): string[] {
  return (files.get(name)?.toString('utf8') ?? '').split('\n').filter(line => line.trim() !== '')
}
