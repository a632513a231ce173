/** What a node runs to take images that come beside the engine. */
import { ctrImport, inTurn } from '../engine/images.ts'

/**
 * Arguments: containerd's folder, the snapshotter, and the files of the layout to leave out.
 *
 * Through containerd's API each byte costs about eight times what it costs to write it (test/bench/RESULTS.md). So what is large is put to where
 * containerd keeps its content, and `ctr content ingest` makes it known: it is given the file, and copies nothing of what lies there
 * already, since namespaces share content (containerd's metadata/content.go); otherwise it copies all. What is small is not worth
 * programs of its own, and is imported. Whether content is what its name says shows when it is unpacked. Until images refer to it,
 * a root keeps the garbage collector from it (containerd's docs/garbage-collection.md). It is written to the disk while the processors unpack, as
 * containerd does before it goes on: else the node's removal would have to wait for that.
 */
const SCRIPT = `set -euo pipefail
at=$1 snapshotter=$2; shift 2
store=$at/io.containerd.content.v1.content/blobs/sha256
folder=$(mktemp --directory "$at/kind-in-dind.XXXXXX")
trap 'rm --recursive "$folder"' EXIT
cd "$folder"
content() { ctr --namespace=k8s.io content "$@"; }
# FILE DIGEST
ingest() {
  content ingest --expected-digest="sha256:$2" --expected-size="$(stat --format=%s "$1")" "kind-in-dind-$2" <"$1"
}
tar --extract --file=- "\${@/#/--exclude=}"
root= large= references=()
# No process substitution: the node's /proc does not know this process.
[ ! -d "$store" ] || [ ! -d blobs/sha256 ] || large=$(find blobs/sha256 -type f -size +8M -printf '%f\\n')
if [ -n "$large" ]; then
  for digest in $large; do references+=("containerd.io/gc.ref.content.$digest=sha256:$digest"); done
  echo "\${references[@]}" >root
  root=$(sha256sum root | cut --characters=-64)
  ingest root "$root"
  content label "sha256:$root" containerd.io/gc.root=kind-in-dind "\${references[@]}" >/dev/null
  for digest in $large; do
    [ -e "$store/$digest" ] || ln "blobs/sha256/$digest" "$store/"
    ingest "blobs/sha256/$digest" "$digest"
    sync --data "$store/$digest" &
    rm "blobs/sha256/$digest"
  done
  rm root
fi
tar --create --file=- . | ${ctrImport('"$snapshotter"').join(' ')}
[ -z "$root" ] || content label "sha256:$root" containerd.io/gc.root= >/dev/null
`

/**
 * The command of a node that reads images as the engine gives them out from its stdin.
 *
 * @param given.without digests of layers that it has
 * @param limit seconds
 * @param root containerd's folder
 */
export const takeImages = (
  given: { readonly snapshotter: string; readonly without: readonly string[] },
  limit: number,
  root = '/var/lib/containerd',
): string[] => {
  const files = given.without.map(digest => `blobs/${digest.replace(':', '/')}`)
  return inTurn(limit, ['bash', '-c', SCRIPT, 'take', root, given.snapshotter, ...files])
}
