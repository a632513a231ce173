/** What a node's containerd has. */
import { chainIds } from './oci.ts'

export interface NodeContent {
  /** By the full name of an image, the digests that tell its content: of its config, and of its manifest or index. */
  readonly images: ReadonlyMap<string, ReadonlySet<string>>
  /** Chain ids of unpacked layers. */
  readonly snapshots: ReadonlySet<string>
  /** Digests of what lies there as it came. */
  readonly blobs: ReadonlySet<string>
  readonly snapshotter: string
}

export const EMPTY_NODE: NodeContent = {
  images: new Map(),
  snapshots: new Set(),
  blobs: new Set(),
  snapshotter: 'overlayfs',
}

const MARK = '-- kind-in-dind --'

/**
 * Docker's arguments; prints what `parseNodeContent` reads. The images as the kubelet sees them, for it is the one who
 * must find them, and as they are recorded, with the digest of manifest or index. The snapshotter is the kubelet's too, and
 * not what ctr takes by default: kind sets another one where the engine lies on btrfs or zfs.
 */
export const askNode = (node: string): string[] => [
  'exec',
  node,
  'sh',
  '-ec',
  `crictl images --output json
  echo '${MARK}'
  ctr --namespace=k8s.io images list
  snapshotter=$(containerd config dump | sed -n "s/^ *snapshotter = [\\"']\\([a-z].*\\)[\\"']$/\\1/p" | head -n 1)
  echo '${MARK}'
  echo "\${snapshotter:=overlayfs}"
  echo '${MARK}'
  ctr --namespace=k8s.io snapshots --snapshotter "$snapshotter" list
  echo '${MARK}'
  ctr --namespace=k8s.io content list --quiet`,
]

/** @throws SyntaxError where it is not what `askNode` prints */
export function parseNodeContent(printed: string): NodeContent {
  const [images = '', records = '', snapshotter = '', snapshots = '', blobs = ''] = printed.split(MARK)
  const byName = new Map<string, Set<string>>()
  const add = (name: string, digest: string): void => {
    byName.set(name, (byName.get(name) ?? new Set()).add(digest))
  }
  const { images: listed } = JSON.parse(images) as { images?: readonly Listed[] }
  for (const { id, repoTags, repoDigests } of listed ?? []) {
    for (const name of [...(repoTags ?? []), ...(repoDigests ?? [])]) add(name, id)
  }
  for (const [name = '', , digest = ''] of rows(records)) if (byName.has(name)) add(name, digest)
  return {
    images: byName,
    snapshotter: snapshotter.trim(),
    snapshots: new Set(
      rows(snapshots)
        .filter(words => words.at(-1) === 'Committed')
        .map(([key = '']) => key),
    ),
    blobs: new Set(blobs.split('\n').filter(line => line.startsWith('sha256:'))),
  }
}

/** The words of each line of a table. */
function rows(table: string): readonly (readonly string[])[] {
  return table.split('\n').map(line => line.trim().split(/\s+/))
}

interface Listed {
  readonly id: string
  readonly repoTags?: readonly string[]
  readonly repoDigests?: readonly string[]
}

/**
 * Which layers a node lacks for an image. One that was unpacked on another one than here is another snapshot: the node has
 * it only in the place where it is needed.
 *
 * @param diffIds of the image's layers, from the lowest
 */
export function lackingLayers(diffIds: readonly string[], { snapshots }: NodeContent): ReadonlySet<string> {
  return new Set(diffIds.filter((_, index) => !snapshots.has(chainIds(diffIds)[index] ?? '')))
}
