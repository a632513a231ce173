# The Docker engine of the lab: a containerd and a dockerd that keep everything under $LAB.

SOCKET=$LAB/docker.sock
RUN=$LAB/run
# outside the pools from which an engine inside a container picks its own networks, so that the mirror on this address
# is reached from there too
BRIDGE_ADDRESS=${KIND_IN_DIND_LAB_BRIDGE:-10.213.0.1/24}
GATEWAY=${BRIDGE_ADDRESS%/*}
export DOCKER_HOST=unix://$SOCKET

engine_answers() { [ -S "$SOCKET" ] && curl -sf --max-time 5 --unix-socket "$SOCKET" http://engine/_ping >/dev/null; }

# what dockerd and shims keep outside of the folders that they are given, innermost first
STATE_FOLDERS='/run/containerd/s /run/containerd /run/docker/plugins /run/docker'

# ours NAME: prints the recorded pid of dockerd or containerd if that process lives and is the lab's.
ours() {
  local pid
  pid=$(cat "$RUN/$1.lab-pid" 2>/dev/null) || return 1
  [ -n "$pid" ] && tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline" | grep -qF "$LAB/" || return 1
  grep -qx "$1" "/proc/$pid/comm" 2>/dev/null || return 1
  printf '%s\n' "$pid"
}

# alive PID: runs still; a zombie that nobody reaps does not count.
alive() {
  local state
  state=$(sed -n 's/^State:[[:space:]]*//p' "/proc/$1/status" 2>/dev/null)
  [[ $state == [!ZX]* ]]
}

# stop_process NAME SECONDS
stop_process() {
  local pid end=$((SECONDS + $2))
  pid=$(ours "$1") || return 0
  kill "$pid" 2>/dev/null || true
  while alive "$pid" && [ $SECONDS -lt $end ]; do sleep 0.1; done
  kill -9 "$pid" 2>/dev/null || true
  while alive "$pid"; do sleep 0.05; done
  rm -f "$RUN/$1.lab-pid"
}

# refuse_other_engine: two engines in one network namespace fight over the same firewall chains.
refuse_other_engine() {
  local comm pid
  for comm in /proc/[0-9]*/comm; do
    [ "$(cat "$comm" 2>/dev/null)" = dockerd ] || continue
    pid=${comm#/proc/} pid=${pid%/comm}
    [ "$(readlink "/proc/$pid/ns/net")" = "$(readlink /proc/self/ns/net)" ] || continue
    tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$LAB/data" && continue
    die "another Docker engine (process $pid) runs on this machine: stop it, or run the tests on it with" \
      "KIND_IN_DIND_NAMES=test/lab/names.public.json"
  done
}

# remember_before: what `down` gives back. The first start writes it, `down` removes it.
remember_before() {
  [ ! -f "$RUN/before" ] || return 0
  {
    printf 'bridge=%s\n' "$([ -d /sys/class/net/docker0 ] && echo theirs || echo ours)"
    printf 'chains=%s\n' "$(iptables -t nat -S DOCKER >/dev/null 2>&1 && echo theirs || echo ours)"
    printf 'forward_policy=%s\n' "$(iptables -S FORWARD | sed -n 's/^-P FORWARD //p')"
    printf 'ip_forward=%s\n' "$(cat /proc/sys/net/ipv4/ip_forward)"
    printf 'made_folders="%s"\n' "$(for folder in $STATE_FOLDERS; do [ -d "$folder" ] || printf '%s ' "$folder"; done)"
    printf 'inotify_instances=%s\n' "$(cat /proc/sys/fs/inotify/max_user_instances)"
    printf 'inotify_watches=%s\n' "$(cat /proc/sys/fs/inotify/max_user_watches)"
  } >"$RUN/before.new"
  mv "$RUN/before.new" "$RUN/before"
}

# raise FILE VALUE: a kernel setting, if it is lower. A machine that refuses may still do with what it has.
raise() {
  [ "$(cat "$1")" -ge "$2" ] || echo "$2" >"$1" 2>/dev/null || say "could not raise $1 to $2"
}

# clear_leftovers: what an engine that was killed leaves: containers without a shim, mounts, sockets, pid files.
# Only processes in a control group named by a container of this data root are ended.
clear_leftovers() {
  local id group pid mount
  stop_process dockerd 1
  stop_process containerd 1
  end_shims
  for id in "$LAB"/data/containers/*; do
    [ -d "$id" ] || continue
    # the name of a shim's socket is made of the address of its containerd, the namespace and the container
    rm -f "/run/containerd/s/$(printf %s "$RUN/containerd.sock/moby/${id##*/}" | sha256sum | cut -d' ' -f1)"
    while read -r group; do
      while read -r pid; do kill -9 "$pid" 2>/dev/null || true; done < <(find "$group" -name cgroup.procs -exec cat {} + 2>/dev/null)
      find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done < <(find /sys/fs/cgroup -maxdepth 4 -type d -name "*${id##*/}*" 2>/dev/null)
  done
  while read -r mount; do umount -l "$(printf %b "$mount")" 2>/dev/null || true; done < <(
    awk -v lab="$LAB/" 'index($5, lab) == 1 {print $5}' /proc/self/mountinfo | sort -r)
  rm -rf "$RUN"/exec "$RUN"/containerd "$RUN"/*.sock* "$RUN"/docker.pid "$SOCKET"
}

# end_shims: the lab's containerd is named on the command line of each of its shims.
end_shims() {
  local comm pid
  for comm in /proc/[0-9]*/comm; do
    case $(cat "$comm" 2>/dev/null) in containerd-shim*) ;; *) continue ;; esac
    pid=${comm#/proc/} pid=${pid%/comm}
    if tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$RUN/containerd.sock"; then kill -9 "$pid" 2>/dev/null || true; fi
  done
}

# detached NAME COMMAND...: a process that outlives this script and everything that started it.
detached() {
  local name=$1
  shift
  (
    ulimit -n "$(ulimit -Hn)"
    exec setsid "$@" </dev/null >>"$LAB/log/$name.log" 2>&1 9>&-
  ) &
  echo $! >"$RUN/$name.lab-pid"
}

# wait_until NAME SECONDS COMMAND...: until COMMAND succeeds, or the process NAME is gone.
wait_until() {
  local name=$1 end=$((SECONDS + $2))
  shift 2
  until "$@" 2>/dev/null; do
    if ! alive "$(cat "$RUN/$name.lab-pid")" || [ $SECONDS -ge $end ]; then
      tail -n 20 "$LAB/log/$name.log" >&2
      die "$name does not answer; its log: $LAB/log/$name.log"
    fi
    sleep 0.05
  done
}

start_engine() {
  [ ${#RUN} -lt 80 ] || die "the path $LAB is too long for unix sockets: set KIND_IN_DIND_LAB to a shorter one"
  ! engine_answers || return 0
  local start=$SECONDS
  refuse_other_engine
  mkdir -p "$RUN" "$LAB/data" "$LAB/mirror"
  remember_before
  clear_leftovers
  raise /proc/sys/fs/inotify/max_user_instances 1024
  raise /proc/sys/fs/inotify/max_user_watches 524288
  cat >"$RUN/containerd.toml" <<TOML
version = 2
root = "$LAB/data/containerd"
state = "$RUN/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "$RUN/containerd.sock"
TOML
  detached containerd containerd --config "$RUN/containerd.toml"
  wait_until containerd 20 test -S "$RUN/containerd.sock"
  detached dockerd dockerd --host "$DOCKER_HOST" --containerd "$RUN/containerd.sock" --data-root "$LAB/data" \
    --exec-root "$RUN/exec" --pidfile "$RUN/docker.pid" --bip "$BRIDGE_ADDRESS"
  wait_until dockerd 60 engine_answers
  say "started dockerd in $((SECONDS - start)) s"
  tidy_engine
}

# tidy_engine: removes what killed tests left, and the mirror; only the lab's images stay.
tidy_engine() {
  local containers networks volumes
  containers=$(docker ps -aq)
  # shellcheck disable=SC2086 # lists of ids
  [ -z "$containers" ] || docker rm -fv $containers >/dev/null
  networks=$(docker network ls -q --filter type=custom)
  # shellcheck disable=SC2086
  [ -z "$networks" ] || docker network rm $networks >/dev/null
  volumes=$(docker volume ls -q)
  # shellcheck disable=SC2086
  [ -z "$volumes" ] || docker volume rm $volumes >/dev/null
  docker image prune -af --filter 'label!=kind-in-dind.lab.key' >/dev/null
  docker image prune -f >/dev/null
  # by the API: the docker command would complain about a missing buildx
  curl -sf -o /dev/null -X POST --unix-socket "$SOCKET" 'http://engine/build/prune?all=1'
  [ -z "$containers$networks$volumes" ] || say "removed what earlier tests left on the engine"
}

has_containers() {
  local entry
  for entry in "$LAB"/data/containers/* "$LAB"/data/volumes/*/_data; do [ ! -d "$entry" ] || return 0; done
  return 1
}

# give_back: the machine as it was before the first start.
give_back() {
  local made_folders="" # older records have none
  local bridge chains forward_policy ip_forward inotify_instances inotify_watches table group
  [ -f "$RUN/before" ] || return 0
  # shellcheck source=/dev/null
  . "$RUN/before"
  [ "$bridge" = theirs ] || ip link delete docker0 2>/dev/null || true
  if [ "$chains" = ours ]; then
    for table in nat filter; do
      iptables-save -t $table | grep -vE 'DOCKER|docker0' | iptables-restore -T $table
    done
  fi
  iptables -P FORWARD "$forward_policy"
  echo "$ip_forward" >/proc/sys/net/ipv4/ip_forward
  echo "$inotify_instances" >/proc/sys/fs/inotify/max_user_instances
  echo "$inotify_watches" >/proc/sys/fs/inotify/max_user_watches
  for group in /sys/fs/cgroup/docker /sys/fs/cgroup/*/docker; do
    [ ! -d "$group" ] || find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
  done
  # shellcheck disable=SC2086 # a list
  rmdir $made_folders 2>/dev/null || true
  rm -rf "$RUN"
}
