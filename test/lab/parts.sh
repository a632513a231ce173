# Parts: folders under $LAB/parts, each made once for what it is made from.

say() { printf '%s lab: %s\n' "$(date +%T)" "$*" >&2; }

die() {
  say "$*"
  exit 1
}

# key TEXT|FILE...: a short hash of texts and of the contents of files.
key() {
  local item
  for item; do if [ -f "$item" ]; then cat "$item"; else printf '%s\n' "$item"; fi; done | sha256sum | cut -c1-12
}

# logged NAME COMMAND...: runs COMMAND in a subshell of its own with its output in a log; says how long it took.
logged() {
  local name=$1 start=$SECONDS status=0 log=$LAB/log/${1//\//-}.log
  shift
  say "building $name ..."
  # not `(...) || ...`: bash ignores -e inside whatever stands left of ||
  set +e
  (
    set -euo pipefail
    "$@"
  ) >"$log" 2>&1 </dev/null 9>&-
  status=$?
  set -e
  if [ $status != 0 ]; then
    tail -n 30 "$log" >&2
    die "building $name failed after $((SECONDS - start)) s; the whole log: $log"
  fi
  say "built $name in $((SECONDS - start)) s"
}

# part NAME KEY COMMAND...: afterwards $LAB/NAME is a link to the part. COMMAND runs with $OUT, an empty folder
# which becomes the part only if COMMAND succeeds, so an interrupted build leaves no half a part.
part() {
  local name=$1 made=$LAB/parts/$1-$2
  shift 2
  if [ ! -d "$made" ]; then
    rm -rf "$made.new" && mkdir -p "$made.new"
    OUT=$made.new logged "$name" "$@"
    mv "$made.new" "$made"
  fi
  [ "$(readlink "$LAB/$name")" = "parts/${made##*/}" ] || ln -sfn "parts/${made##*/}" "$LAB/$name"
}

# prune_parts: removes parts that no link names, unless something runs from one (an engine that was started before its
# part was built anew) or has it mounted.
prune_parts() {
  local named made name removed=0
  named=$(find "$LAB" -maxdepth 1 -type l -printf '%l\n')
  for made in "$LAB"/parts/*; do
    name=parts/${made##*/}
    ! grep -qxF "$name" <<<"$named" || continue
    [ -z "$(find /proc/[0-9]*/exe -lname "*/$name/*" 2>/dev/null || true)" ] || continue
    ! grep -qsF "/$name" /proc/[0-9]*/mountinfo || continue
    rm -rf --one-file-system "$made"
    removed=$((removed + 1))
  done
  [ $removed = 0 ] || say "removed $removed old parts"
}
