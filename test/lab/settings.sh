# Where everything is, and one at a time. Sourced first by up and down.

LAB=${KIND_IN_DIND_LAB:-${XDG_CACHE_HOME:-$HOME/.cache}/kind-in-dind-lab}
MARKER=$LAB/.kind-in-dind-lab

# lock: the folder, marked as ours, for this process alone. Nothing that goes on running may inherit descriptor 9.
lock() {
  [ "$(id -u)" = 0 ] || die "the lab needs root: it starts a Docker engine"
  mkdir -p "$LAB"/{log,parts,go,making}
  [ -f "$MARKER" ] || echo 'made by test/lab/up of kind-in-dind; test/lab/down --purge removes it' >"$MARKER"
  exec 9>"$LAB/lock"
  flock -n 9 || {
    say "waiting for another up or down ..."
    flock 9
  }
}
