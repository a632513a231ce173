/** What a cluster's nodes and its engine can tell of it, as files by name; bounded in time and size. */
import { randomBytes } from 'node:crypto'
import { containerLog, describeNode, runInNode } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { messageOf } from '../lib/problem.ts'
import type { Plan } from '../plan.ts'

/** By path below the folder of the export, such as `events.txt`, `shop-worker/pods/…/0.log`. */
export type Files = ReadonlyMap<string, Buffer>

export interface Collected {
  readonly files: Files
  /** The values of the cluster's Secrets, which must not be in what anybody reads. */
  readonly secrets: readonly string[]
  /** Sentences on what is not there. */
  readonly missing: readonly string[]
}

/** How much is kept of the beginning of a file, and of its end, in bytes. */
export const HALF = 1024 * 1024

/** How much is kept in all, in bytes. */
export const MOST = 48 * 1024 * 1024

/** How long what came in time may take to be put together, in milliseconds. */
const LATE = 1000

/** The name of the part with the values of Secrets, which is no file. */
const SECRETS = 'secrets'

/**
 * What runs in a node, as `sh -s MARK HALF CLUSTER`. Every part is told by a line with a mark that nothing else has. What
 * matters most comes first, should time run out. Values of Secrets come whole: one that is cut would not be found.
 */
const SCRIPT = `
mark=$1 half=$2
part() { printf '\\n%s %s\\n' "$mark" "$1"; }
bounded() { head -c "$half"; tail -c "$half"; }
ask() { timeout 8 kubectl --kubeconfig=/etc/kubernetes/admin.conf --request-timeout=5s "$@" 2>&1; }
if [ "$3" = cluster ] && [ -f /etc/kubernetes/admin.conf ]; then
  part ${SECRETS}
  ask get secrets --all-namespaces --output=go-template='{{range .items}}{{range .data}}{{println .}}{{end}}{{end}}'
  part not-ready.txt
  ask get nodes --output=go-template='{{range .items}}{{$it := .}}{{range .status.conditions}}{{if eq .type "Ready"}}{{if ne .status "True"}}node {{$it.metadata.name}}: {{.reason}}: {{.message}}{{println}}{{end}}{{end}}{{end}}{{end}}' | bounded
  ask get pods --all-namespaces --output=go-template='{{range .items}}{{$it := .}}{{range .status.conditions}}{{if and (ne .status "True") (or (eq .type "Ready") (eq .type "PodScheduled"))}}{{if ne $it.status.phase "Succeeded"}}pod {{$it.metadata.namespace}}/{{$it.metadata.name}}: {{$it.status.phase}}; {{.reason}}: {{.message}}{{range $it.status.containerStatuses}}{{with .state.waiting}}; {{.reason}}: {{.message}}{{end}}{{with .state.terminated}}; it ended: {{.reason}}, exit code {{.exitCode}}{{end}}{{with .lastState.terminated}}; it ended before: {{.reason}}, exit code {{.exitCode}}{{end}}{{end}}{{println}}{{end}}{{end}}{{end}}{{end}}' | bounded
  part events.txt
  ask get events --all-namespaces --sort-by=.metadata.creationTimestamp | bounded
  part resources.txt
  ask get nodes,pods,services,deployments,daemonsets,statefulsets,jobs,persistentvolumeclaims --all-namespaces --output=wide | bounded
  part nodes.txt
  ask describe nodes | bounded
fi
part NODE/kubelet.log
journalctl --no-pager --output=short-precise --unit=kubelet 2>&1 | bounded
part NODE/containers.txt
timeout 8 crictl ps --all 2>&1 | bounded
find /var/log/pods -type f -name '*.log' 2>/dev/null | sort | while IFS= read -r file; do
  part "NODE/\${file#/var/log/}"
  bounded <"$file"
done
part NODE/containerd.log
journalctl --no-pager --output=short-precise --unit=containerd 2>&1 | bounded
part NODE/images.txt
timeout 8 crictl images 2>&1 | bounded
part NODE/journal.log
journalctl --no-pager --output=short-precise --priority=notice 2>&1 | bounded
part NODE/disk.txt
df -h / /var 2>&1
`

/**
 * Collects what there is. Never throws: what cannot be had is a sentence among what is missing.
 *
 * @param limit milliseconds; what has come by then, or when the signal comes, is what there is
 */
export async function collectLogs(
  docker: Docker,
  plan: Pick<Plan, 'nodes'>,
  limit: number,
  signal: AbortSignal,
): Promise<Collected> {
  if (signal.aborted) return { files: new Map(), secrets: [], missing: [] }
  const end = AbortSignal.any([signal, AbortSignal.timeout(limit)])
  const files = new Map<string, Buffer>()
  const secrets: string[] = []
  const missing: string[] = []
  let left = MOST
  const keep = (name: string, content: Buffer): void => {
    if (content.length > left) return void missing.push(`${name}: all files together would be too large`)
    left -= content.length
    files.set(name, content)
  }
  const tell = (what: string, work: Promise<void>): Promise<void> =>
    work.catch(error => void missing.push(`${what}: ${messageOf(error)}`))

  const all = Promise.all(
    plan.nodes.flatMap((node, index) => [
      tell(
        `${node}: what runs in it`,
        (async () => {
          for (const [name, content] of await collectInNode(docker, node, index === 0, end, limit)) {
            if (name === SECRETS) secrets.push(...decoded(content.toString('utf8')))
            else keep(name.replace(/^NODE\//, `${node}/`), cut(content))
          }
        })(),
      ),
      tell(
        `${node}: its container`,
        (async () => {
          const [log, description] = await Promise.all([
            docker.try(containerLog(node), { timeout: limit }),
            docker.run(describeNode(node), { timeout: limit }),
          ])
          keep(`${node}/container.log`, cut(Buffer.from(log.stdout + log.stderr)))
          keep(`${node}/container.json`, Buffer.from(description.stdout))
        })(),
      ),
    ]),
  )
  // The rest would come too late; each command has its own end.
  const late = new Promise(resolve => end.addEventListener('abort', () => setTimeout(resolve, LATE), { once: true }))
  await Promise.race([all, late])
  return { files, secrets, missing }
}

/** @returns the parts by name, in the order in which they came; those that came in time */
async function collectInNode(
  docker: Docker,
  node: string,
  forCluster: boolean,
  end: AbortSignal,
  limit: number,
): Promise<Map<string, Buffer>> {
  const mark = randomBytes(16).toString('hex')
  const running = docker.start(runInNode(node, [mark, `${HALF}`, forCluster ? 'cluster' : '']), { timeout: limit })
  if (end.aborted) running.end()
  end.addEventListener('abort', running.end, { once: true })
  const chunks: Buffer[] = []
  running.stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  running.stdin.end(SCRIPT)
  try {
    await running.ended
  } catch (error) {
    if (chunks.length === 0) throw error
  } finally {
    end.removeEventListener('abort', running.end)
  }
  return partsOf(Buffer.concat(chunks), mark)
}

/** Splits what came at the lines with the mark. */
export function partsOf(all: Buffer, mark: string): Map<string, Buffer> {
  const parts = new Map<string, Buffer>()
  const start = Buffer.from(`\n${mark} `)
  let at = all.indexOf(start)
  while (at !== -1) {
    const end = all.indexOf('\n', at + start.length)
    if (end === -1) break
    const next = all.indexOf(start, end)
    const name = all.subarray(at + start.length, end).toString('utf8')
    parts.set(name, all.subarray(end + 1, next === -1 ? all.length : next))
    at = next
  }
  return parts
}

/** A file of which the middle may be missing, with a line that says so where it is. */
export function cut(content: Buffer, half = HALF): Buffer {
  if (content.length < 2 * half) return content
  const [head, tail] = [content.subarray(0, half), content.subarray(content.length - half)]
  const headEnd = head.lastIndexOf('\n') + 1 || half
  const tailStart = tail.indexOf('\n') + 1
  const note = `\n[... the middle is left out: a file has at most ${2 * half} bytes here ...]\n\n`
  return Buffer.concat([head.subarray(0, headEnd), Buffer.from(note), tail.subarray(tailStart)])
}

/** The values of Secrets as they are written and as they are; what is not base64 is what kubectl said instead. */
function decoded(lines: string): string[] {
  const values = lines.split('\n').filter(line => /^[A-Za-z0-9+/]+=*$/.test(line))
  return values.flatMap(value => [value, Buffer.from(value, 'base64').toString('utf8')])
}
