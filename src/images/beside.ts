/**
 * Images on a way that stays beside the engine: a container with its socket reads it once and feeds the imports of all nodes. Nothing passes
 * through the step, its docker clients and their TLS, which costs about a third less of the machine (test/bench).
 */
import { randomBytes } from 'node:crypto'
import { removeContainers } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import { pidsAndImages, runBeside } from '../engine/images.ts'
import { messageOf } from '../lib/problem.ts'
import { whatItSaid } from '../lib/run.ts'
import type { Plan } from '../plan.ts'
import type { Limits, Outcome } from './feed.ts'
import { IMPORT_LIMIT } from './origin.ts'
import { takeImages } from './take.ts'

/** What the way needs beside nodes, of whose image its container is: the labels of the cluster, and the engine's socket there. */
export interface Beside {
  readonly cluster: string
  readonly labels: Readonly<Record<string, string>>
  readonly socket: string
  /** Whether the engine writes OCI layouts, in which a layer can be left out. */
  readonly writesLayouts: boolean
}

/** Where an engine has its socket unless it is told otherwise. */
const SOCKET = '/var/run/docker.sock'

/** The way of a plan's cluster. An engine that is reached by a socket is taken to have it under the same path. */
export function besideOf({ cluster, labels, engine }: Plan): Beside {
  const [, socket = SOCKET] = /^unix:\/\/(\/.+)$/.exec(engine.env.DOCKER_HOST ?? '') ?? []
  return { cluster, labels, socket, writesLayouts: Number.parseInt(engine.version, 10) >= 25 }
}

/** From so many bytes on the container's start costs less than it saves. */
export const WORTH_IT = 100_000_000

/** tee reads less than this before it has anything of the engine's: its libraries. A pipe that nobody empties holds more. */
const OWN_BYTES = 32_768

/** Nobody here tells a node that takes nothing from an engine that gives nothing: it may be so many times longer than a node alone may. */
const SLOWER = 3

/**
 * Arguments: the query for the engine, and for each node its process id and the command that takes images there, up to `--`. Prints
 * `read BYTES` each second, `whole` when all was read, `done INDEX` and `failed INDEX` for each node. It reads from no engine but the one
 * that runs it: a socket may be another's.
 */
const SCRIPT = `set -u
query=$1; shift
curl --silent --show-error --fail --unix-socket /engine.sock "http://engine/containers/$HOSTNAME/json" >/dev/null || exit 1
folder=$(mktemp -d) && cd "$folder" || exit 1
imports=()
while [ $# -gt 0 ]; do
  i=\${#imports[@]} pid=$1 command=(); shift
  while [ "$1" != -- ]; do command+=("$1"); shift; done
  shift
  mkfifo "$i"
  nsenter --mount --target "$pid" -- "\${command[@]}" <"$i" >/dev/null & imports+=($!)
done
mkfifo bytes
curl --silent --show-error --fail --unix-socket /engine.sock "http://engine/images/get?$query" >bytes & curl=$!
tee --output-error=warn-nopipe "\${!imports[@]}" <bytes >/dev/null & tee=$!
while sleep 1; do
  while read -r what bytes; do [ "$what" != rchar: ] || echo "read $bytes"; done <"/proc/$tee/io"
done 2>/dev/null & ticks=$!
wait "$curl" && how=whole || how=broken
wait "$tee"
echo "$how"
for i in "\${!imports[@]}"; do wait "\${imports[i]}" && echo "done $i" || echo "failed $i"; done
kill "$ticks"
`

/** A node, and what it needs not be sent: digests of layers that it has, which the engine writes as it has them. */
export interface Taker {
  readonly node: string
  readonly snapshotter: string
  readonly without: readonly string[]
}

/**
 * Brings images of the engine into nodes that lack all of them.
 *
 * @param onProgress sees how many bytes were read so far
 * @returns for each node how its import ended, where `behind` is one that needs a read of its own; undefined where this way is not open
 */
export async function feedBeside(
  docker: Docker,
  way: Beside,
  images: readonly string[],
  takers: readonly Taker[],
  log: { readonly debug: (message: string) => void; readonly onProgress?: ((bytes: number) => void) | undefined },
  limits: Limits,
): Promise<readonly Outcome[] | undefined> {
  const name = `${way.cluster}-images-${randomBytes(3).toString('hex')}`
  const ends = new Map<number, Outcome>()
  const giveUp = new AbortController()
  const deadline = new Deadline(() => giveUp.abort())
  let bytes = 0
  let isWhole = false
  let tellAll = (): void => {}
  const allTold = new Promise<undefined>(resolve => {
    tellAll = () => resolve(undefined)
  })
  const onLine = (line: string): void => {
    const [, what, number = ''] = /^(read|whole|done|failed)(?: (\d+))?$/.exec(line) ?? []
    if (what === undefined) log.debug(`beside the engine: ${line}`)
    // Until it has all layers on its disk the engine sends nothing, however long that takes.
    if (what === 'read' && Number(number) > Math.max(bytes, OWN_BYTES)) {
      bytes = Number(number)
      log.onProgress?.(bytes)
      deadline.set(limits.lag * SLOWER)
    }
    if (what === 'whole') {
      isWhole = true
      deadline.set(limits.finish)
    }
    if (what === 'done') ends.set(Number(number), 'done')
    if (what === 'failed') ends.set(Number(number), 'behind')
    if (isWhole && ends.size === takers.length) tellAll()
  }
  try {
    const { stdout } = await docker.run(pidsAndImages(takers.map(({ node }) => node)))
    const nodes = stdout.split('\n').map(line => line.split(' '))
    // By its id: what a mirror gave for a digest the engine has by the mirror's name alone.
    const [[, image = ''] = []] = nodes
    const query = images.map(image => `names=${encodeURIComponent(image)}`).join('&')
    const commands = takers.flatMap((taker, index) => [
      nodes[index]?.[0] ?? '',
      ...takeImages(taker, IMPORT_LIMIT),
      '--',
    ])
    const argv = runBeside({ ...way, name, image, script: SCRIPT, args: [query, ...commands] })
    const running = docker.try(argv, { onLine, signal: giveUp.signal, timeout: IMPORT_LIMIT * 1000 })
    // The engine ends a container when all its disk is written, which is nothing to wait for.
    const ended = await Promise.race([running, allTold])
    running.catch(() => {})
    // Nor is its client, which has told all.
    if (ended === undefined) giveUp.abort()
    if (ended !== undefined && !isWhole) throw new Error(whatItSaid(ended, 3))
  } catch (error) {
    log.debug(`The images do not go beside the engine: ${messageOf(error)}`)
    await docker.try(removeContainers([name]))
    if (!isWhole) return undefined
  } finally {
    deadline.set(undefined)
  }
  return takers.map((_, index) => ends.get(index) ?? 'behind')
}

/** Acts unless it is set anew in time. */
class Deadline {
  private timer: NodeJS.Timeout | undefined
  private readonly act: () => void

  constructor(act: () => void) {
    this.act = act
  }

  /** @param limit milliseconds; undefined for no limit */
  set(limit: number | undefined): void {
    clearTimeout(this.timer)
    this.timer = limit === undefined ? undefined : setTimeout(this.act, limit)
  }
}
