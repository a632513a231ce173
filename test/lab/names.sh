# The names file: all that tests read.

write_names() {
  local new=$LAB/names.json.new
  cat >"$new" <<JSON
{
  "engine": "$DOCKER_HOST",
  "mirror": "$MIRROR",
  "kubernetesVersion": "v$KUBERNETES",
  "kindVersion": "$KIND",
  "images": {
    "node": "$(image_ref node)",
    "nodeContainerd2": "$(image_ref node-containerd2)",
    "dind": "$(image_ref dind)",
    "dindNewest": "$(image_ref dind-sid)",
    "step": "$(image_ref step)",
    "registry": "$(image_ref registry)",
    "buildkit": "$(image_ref buildkit)",
    "buildkitRootless": "$(image_ref buildkit-rootless)",
    "web": "$(image_ref web)"
  },
  "tools": {
    "kind": "$LAB/kind/kind",
    "kubectl": "$LAB/kubernetes/kubectl",
    "docker": "$LAB/engine/usr/bin/docker",
    "buildx": "$LAB/docker-buildx/docker-buildx",
    "compose": "$LAB/docker-compose/docker-compose",
    "buildkiteAgent": "$LAB/buildkite-agent/buildkite-agent",
    "act": "$LAB/act/act",
    "node": "$LAB/node24/bin/node"
  }
}
JSON
  mv "$new" "$LAB/names.json"
}

# check_names FILE: with names of somebody's own engine and images there is nothing to build.
check_names() {
  local engine docker
  [ -f "$1" ] || die "KIND_IN_DIND_NAMES names $1, which is not a file"
  engine=$(sed -n 's/.*"engine": *"\(.*\)".*/\1/p' "$1")
  docker=$(sed -n 's/.*"docker": *"\(.*\)".*/\1/p' "$1")
  "${docker:-docker}" --host "$engine" version --format '{{.Server.Version}}' >/dev/null ||
    die "the engine $engine of $1 does not answer"
  say "using the engine $engine and the images named in $1"
}
