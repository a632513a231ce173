# Programs built with the ordinary Go client, by module name: Kubernetes, kind and what stands around them.

# go_tool NAME MODULE VERSION PACKAGE [LDFLAGS]: one program into $OUT.
go_tool() {
  local name=$1 module=$2 version=$3 package=$4 flags=${5:-}
  local work=$LAB/go/$name
  mkdir -p "$work" && cd "$work"
  printf 'module lab\n\ngo 1.24.0\n' >go.mod
  go get "$module@$version"
  go build -trimpath -ldflags "-s -w $flags" -o "$OUT/$name" "$package"
}

KUBERNETES_PROGRAMS="kubelet kubeadm kubectl kube-apiserver kube-controller-manager kube-scheduler kube-proxy"

# kubernetes_programs: every program of a Kubernetes release. Its go.mod points at staging folders; the published
# modules of the same release stand in for them.
kubernetes_programs() {
  local work=$LAB/go/kubernetes module version=v$KUBERNETES program
  mkdir -p "$work" && cd "$work"
  module=$(go mod download -json "k8s.io/kubernetes@$version" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
  {
    printf 'module lab\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n' "$version"
    awk '/k8s.io\/.* v0.0.0$/ {print $1}' "$module" | while read -r m; do echo "  $m => $m v0.${KUBERNETES#1.}"; done
    echo ')'
  } >go.mod
  {
    printf '//go:build tools\n\npackage lab\n\nimport (\n'
    for program in $KUBERNETES_PROGRAMS; do printf '\t_ "k8s.io/kubernetes/cmd/%s"\n' "$program"; done
    echo ')'
  } >tools.go
  go mod tidy
  # shellcheck disable=SC2155 # cut does not fail
  local flags="-s -w -X k8s.io/component-base/version.gitVersion=$version -X k8s.io/component-base/version.gitMajor=1 \
    -X k8s.io/component-base/version.gitMinor=$(cut -d. -f2 <<<"$KUBERNETES") \
    -X k8s.io/component-base/version.gitTreeState=clean -X k8s.io/client-go/pkg/version.gitVersion=$version"
  for program in $KUBERNETES_PROGRAMS; do
    go build -trimpath -ldflags "$flags" -o "$OUT/$program" "k8s.io/kubernetes/cmd/$program"
  done
}

# pause: the program that holds a pod's namespaces.
pause_program() {
  local work=$LAB/go/pause
  mkdir -p "$work" && cd "$work"
  printf 'module pause\n\ngo 1.24.0\n' >go.mod
  cat >main.go <<'GO'
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGINT, syscall.SIGTERM)
	<-end
}
GO
  go build -trimpath -ldflags '-s -w' -o "$OUT/pause" .
}

go_tools() {
  # auto: a program that wants a newer Go than there is gets it from the Go module proxy
  export GOFLAGS=-mod=mod CGO_ENABLED=0 GOTOOLCHAIN=auto
  local recipe
  one() { # NAME MODULE VERSION PACKAGE [LDFLAGS]
    recipe=$(declare -f go_tool)
    part "$1" "$(key "$recipe" "$@")" go_tool "$@"
  }
  one kind sigs.k8s.io/kind "$KIND" sigs.k8s.io/kind
  part kubernetes "$(key "$(declare -f kubernetes_programs)" "$KUBERNETES" "$KUBERNETES_PROGRAMS")" kubernetes_programs
  part pause "$(key "$(declare -f pause_program)")" pause_program
  one etcd go.etcd.io/etcd/server/v3 "$ETCD" go.etcd.io/etcd/server/v3
  one coredns github.com/coredns/coredns "$COREDNS" github.com/coredns/coredns
  one crictl sigs.k8s.io/cri-tools "$CRICTL" sigs.k8s.io/cri-tools/cmd/crictl
  one docker-buildx github.com/docker/buildx "$BUILDX" github.com/docker/buildx/cmd/buildx \
    "-X github.com/docker/buildx/version.Version=$BUILDX"
  one docker-compose github.com/docker/compose/v2 "$COMPOSE" github.com/docker/compose/v2/cmd \
    "-X github.com/docker/compose/v2/internal.Version=$COMPOSE"
  one buildkite-agent github.com/buildkite/agent/v3 "$BUILDKITE_AGENT" github.com/buildkite/agent/v3
  one buildkitd github.com/moby/buildkit "$BUILDKIT" github.com/moby/buildkit/cmd/buildkitd \
    "-X github.com/moby/buildkit/version.Version=$BUILDKIT"
  one rootlesskit github.com/rootless-containers/rootlesskit/v2 "$ROOTLESSKIT" \
    github.com/rootless-containers/rootlesskit/v2/cmd/rootlesskit
  one buildctl github.com/moby/buildkit "$BUILDKIT" github.com/moby/buildkit/cmd/buildctl \
    "-X github.com/moby/buildkit/version.Version=$BUILDKIT"
}
