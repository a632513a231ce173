# The images, each made anew when what it is made from has changed. The key of each is one of its labels.

IMAGE_NAMES=(node node-containerd2 dind dind-sid step web registry buildkit buildkit-rootless)

image_ref() {
  case $1 in
    node) printf 'kindest/node:v%s\n' "$KUBERNETES" ;;
    # its Kubernetes version is known by the tag
    node-containerd2) printf 'kind-in-dind-lab/%s:v%s\n' "$1" "$KUBERNETES" ;;
    *) printf 'kind-in-dind-lab/%s:v1\n' "$1" ;;
  esac
}

# image NAME KEY: made by the function NAME_image, in the folder $WORK, which is gone afterwards.
image() {
  local ref
  ref=$(image_ref "$1")
  grep -qxF "$ref $2" <<<"$IMAGES_THERE" || logged "image $ref" build_image "$1" "$2" "$ref"
}

build_image() {
  WORK=$LAB/making/$1 LABEL="LABEL kind-in-dind.lab.key=$2" REF=$3
  rm -rf "$WORK" && mkdir -p "$WORK"
  "$1_image"
  rm -rf "$WORK"
}

# images: one call tells which images there are, with their keys.
images() {
  local name refs=()
  for name in "${IMAGE_NAMES[@]}"; do refs+=("$(image_ref "$name")"); done
  # under every name that it has: tests give names of their own
  # shellcheck disable=SC2016 # a template's variable
  IMAGES_THERE=$(docker image inspect --format \
    '{{$key := index .Config.Labels "kind-in-dind.lab.key"}}{{range .RepoTags}}{{println . $key}}{{end}}' "${refs[@]}" 2>/dev/null || true)
  for name in "${IMAGE_NAMES[@]}"; do image "$name" "$("$name"_key)"; done
}

# recipe NAME FUNCTION...: what an image's key is made of: its files, its functions, the parts it takes from.
recipe() {
  local name=$1 function
  shift
  [ ! -d "images/$name" ] || find "images/$name" -type f -exec sha256sum {} + | sort
  for function in "${name}_image" import_tree slim "$@"; do declare -f "$function"; done
  readlink "$LAB/image-root"
}

node_key() { key "$(recipe node control_plane_images pack kube_image)" images/cni/lab-cni "$(readlink "$LAB"/{kubernetes,pause,etcd,coredns,crictl})"; }
node-containerd2_key() { key "$(recipe node-containerd2)" "$(node_key)" "$("$LAB/engine-newest/usr/bin/containerd" --version)"; }
dind_key() { key "$(recipe dind)" "$GATEWAY"; }
dind-sid_key() { key "$(recipe dind-sid)" "$(dind_key)" "$("$LAB/engine-newest/usr/sbin/dockerd" --version)"; }
step_key() { key "$(recipe step)" "$(readlink "$LAB"/{node24,docker-buildx})"; }
web_key() { key "$(recipe web)"; }
registry_key() { key "$(recipe registry)"; }
buildkit-rootless_key() { key "$(recipe buildkit-rootless)" "$(readlink "$LAB"/{buildkitd,buildctl,rootlesskit,uidmap})"; }
buildkit_key() { key "$(recipe buildkit)" "$(readlink "$LAB"/{buildkitd,buildctl})"; }

# import_tree FOLDER CHANGE...: a folder becomes the image $REF, as one layer.
import_tree() {
  local folder=$1 change changes=(--change "$LABEL")
  shift
  for change; do changes+=(--change "$change"); done
  tar -C "$folder" -c . | docker import "${changes[@]}" - "$REF"
}

# slim FOLDER PROGRAM...: a root filesystem with these programs, their libraries, and busybox for everything else.
slim() {
  local to=$1 from=$LAB/image-root path real file
  shift
  mkdir -p "$to"/usr/{bin,sbin,lib,lib64,local/bin} "$to"/{dev,etc/ssl/certs,proc,root,run,sys,tmp,var/lib,var/log,var/tmp}
  chmod 1777 "$to/tmp" "$to/var/tmp"
  for file in bin sbin lib lib64; do ln -s "usr/$file" "$to/$file"; done
  ln -s /run "$to/var/run"
  cp -a "$from"/etc/{passwd,group,shadow,nsswitch.conf,services,protocols,os-release,debian_version} "$to/etc/"
  cp -a "$from/usr/lib/os-release" "$to/usr/lib/"
  cp -a "$from/etc/ssl/certs/ca-certificates.crt" "$to/etc/ssl/certs/"
  while read -r path real; do
    case $real in /bin/* | /sbin/* | /lib/* | /lib64/*) real=/usr$real ;; esac
    case $path in /bin/* | /sbin/* | /lib/* | /lib64/*) path=/usr$path ;; esac
    [ -e "$to$real" ] || install -D "$(realpath -e "$from$real")" "$to$real"
    [ -e "$to$path" ] || ln -s "$real" "$to$path"
  done < <(
    # shellcheck disable=SC2016 # runs in there
    chroot "$from" bash -c 'for program; do
      path=$(command -v "$program"); real=$(readlink -f "$path"); echo "$path $real"
      ldd "$real" 2>/dev/null | grep -o "/[^ ]*" | while read -r library; do echo "$library $library"; done
    done' - busybox "$@" | sort -u
  )
  case " $* " in *" iptables "*)
    file=$(cd "$from" && echo usr/lib/*-linux-gnu/xtables)
    mkdir -p "$to/${file%/*}" && cp -a "$from/$file" "$to/$file"
    ;;
  esac
  for file in $("$to/usr/bin/busybox" --list); do
    [ -e "$to/usr/bin/$file" ] || [ -e "$to/usr/sbin/$file" ] || ln -s busybox "$to/usr/bin/$file"
  done
}

# pack IMAGE PROGRAM: an image that holds one static program.
pack() {
  rm -rf "$WORK/one" && install -Dm755 -t "$WORK/one/usr/local/bin" "$2"
  tar -C "$WORK/one" -c . | docker import --change "ENTRYPOINT [\"/usr/local/bin/${2##*/}\"]" \
    --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - "$1"
}

# kube_image IMAGE PROGRAM: an image for a program of every node, which needs iptables and a shell around it.
kube_image() {
  rm -rf "$WORK/kube" && mkdir "$WORK/kube"
  slim "$WORK/kube" bash curl jq ip conntrack iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore
  install -m755 -t "$WORK/kube/usr/local/bin" "$2"
  tar -C "$WORK/kube" -c . | docker import - "$1"
}

# control_plane_images: makes every image that kubeadm asks for, and prints their names to file descriptor 3.
control_plane_images() {
  local ref name
  for ref in $("$LAB/kubernetes/kubeadm" config images list --kubernetes-version "v$KUBERNETES"); do
    name=${ref##*/} name=${name%%:*}
    case $name in
      kube-proxy) kube_image "$ref" "$LAB/kubernetes/$name" ;;
      kube-*) pack "$ref" "$LAB/kubernetes/$name" ;;
      *) pack "$ref" "$LAB/$name/$name" ;;
    esac
    echo "$ref" >&3
  done
  kube_image kind-in-dind-lab/cni:v1 "$PWD/images/cni/lab-cni"
  echo kind-in-dind-lab/cni:v1 >&3
}

# node_image: what kind accepts as kindest/node: systemd, a containerd that holds the control plane's images, kubeadm.
node_image() {
  local root=$WORK/tree files=$PWD/images/node builder=lab-node-build
  mkdir "$root"
  tar -C "$LAB/image-root" -c --exclude=./usr/bin/{docker,dockerd,docker-proxy,docker-init,docker-registry,busybox,openssl,perl*} \
    --exclude=./usr/lib/git-core --exclude=./usr/bin/git* --exclude=./usr/share/{perl,perl5,git-core,bash-completion,zoneinfo} \
    --exclude=./usr/lib/*/perl --exclude=./usr/lib/*/perl-base --exclude=./var/lib/dpkg/info --exclude=./var/cache . | tar -C "$root" -x
  install -m755 -t "$root/usr/bin" "$LAB"/kubernetes/{kubelet,kubeadm,kubectl} "$LAB/crictl/crictl"
  install -m755 "$files/entrypoint" "$root/usr/local/bin/entrypoint"
  install -Dm644 "$files/containerd-config.toml" "$root/etc/containerd/config.toml"
  install -m644 -t "$root/etc/systemd/system" "$files"/{containerd,kubelet,pod-dns}.service "$files/kubelet.slice"
  install -Dm644 -t "$root/kind/manifests" "$files"/default-{cni,storage}.yaml
  mkdir -p "$root/etc/kubernetes/manifests" "$root/etc/cni/net.d" "$root/var/cache"
  echo "v$KUBERNETES" >"$root/kind/version"
  echo 'KUBELET_EXTRA_ARGS=--runtime-cgroups=/system.slice/containerd.service' >"$root/etc/default/kubelet"
  echo 'runtime-endpoint: unix:///run/containerd/containerd.sock' >"$root/etc/crictl.yaml"
  # kind wants a node that starts nothing but what it needs, and the machine offers no rlimits to give away
  # shellcheck disable=SC2016 # runs in there
  chroot "$root" bash -euc '
    rm -f /lib/systemd/system/{multi-user,local-fs,basic}.target.wants/* /etc/systemd/system/*.wants/* \
      /lib/systemd/system/sockets.target.wants/*{udev,initctl}* \
      /lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service
    systemctl -q enable containerd kubelet pod-dns
    systemctl -q mask systemd-binfmt
    ctr oci spec | jq "del(.process.rlimits)" >/etc/containerd/cri-base.json'

  local final=$REF
  REF=kind-in-dind-lab/node-build:v1
  import_tree "$root" 'ENV container=docker' 'STOPSIGNAL SIGRTMIN+3'
  control_plane_images 3>"$WORK/control-plane"
  docker rm -fv $builder 2>/dev/null || true
  docker run -d --name $builder --privileged --network none --entrypoint sleep --tmpfs /run "$REF" infinity
  docker exec -d $builder containerd
  until docker exec $builder ctr version; do sleep 0.2; done
  # shellcheck disable=SC2046 # names
  docker save $(cat "$WORK/control-plane") | docker exec -i $builder ctr -n k8s.io images import --no-unpack --digests -
  docker exec $builder bash -c 'pid=$(pidof containerd); kill $pid; while [ -d /proc/$pid ]; do sleep 0.1; done'
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint","/sbin/init"]' --change "$LABEL" $builder "$final"
  docker rm -fv $builder
  # shellcheck disable=SC2046
  docker rmi -f "$REF" $(cat "$WORK/control-plane")
}

# node-containerd2_image: the node image with the newest engine's containerd in it, whose pods get the search domains of the
# node and a network of every IP family. What is not replaced is the same layer, so it costs no more than these programs.
node-containerd2_image() {
  local builder=lab-node-containerd2-build
  install -Dm755 -t "$WORK/tree/usr/bin" "$LAB"/engine-newest/usr/bin/{containerd,containerd-shim-runc-v2,ctr}
  install -Dm644 images/node-containerd2/containerd-config.toml "$WORK/tree/etc/containerd/config.toml"
  install -Dm755 -t "$WORK/tree/usr/local/bin" images/node-containerd2/pod-search
  install -Dm644 -t "$WORK/tree/kind/manifests" images/node-containerd2/default-cni.yaml
  # in place of the one in the image of the CNI, which is a layer below
  install -m755 -t "$WORK/tree/kind" images/node-containerd2/lab-cni
  # without the setuid bit: where an engine remaps users, root's files are another user's, and mount would become that one
  install -m755 -t "$WORK/tree/usr/bin" "$LAB"/image-root/usr/bin/{mount,umount}
  docker rm -fv $builder 2>/dev/null || true
  docker create --name $builder "$(image_ref node)"
  tar -C "$WORK/tree" -c usr etc kind | docker cp - $builder:/
  docker commit --change 'ENTRYPOINT ["/usr/local/bin/entrypoint","pod-search","/sbin/init"]' --change "$LABEL" $builder "$REF"
  docker rm -fv $builder
}

# dind_image: as docker:dind behaves: an engine in a container.
dind_image() {
  slim "$WORK/tree" dockerd docker docker-proxy docker-init containerd containerd-shim-runc-v2 ctr runc openssl ip \
    iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore mount umount modprobe unpigz nsenter tar
  mkdir -p "$WORK/tree/usr/lib/ssl"
  cp "$LAB/image-root/etc/ssl/openssl.cnf" "$WORK/tree/usr/lib/ssl/"
  install -m755 images/dind/entrypoint "$WORK/tree/usr/local/bin/dockerd-entrypoint.sh"
  mkdir -p "$WORK/tree/etc/docker"
  # dockerd pulls from an http mirror as it is; BuildKit in it does so only if it is among the insecure registries too
  printf '{"registry-mirrors": ["http://%s:5000"], "insecure-registries": ["%s:5000"]}\n' "$GATEWAY" "$GATEWAY" >"$WORK/tree/etc/docker/daemon.json"
  import_tree "$WORK/tree" 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' 'ENV DOCKER_TLS_CERTDIR=/certs' 'VOLUME /var/lib/docker' \
    'EXPOSE 2375/tcp 2376/tcp' 'ENTRYPOINT ["dockerd-entrypoint.sh"]'
}

# dind-sid_image: the dind image with another engine in it; all else, the entrypoint too, is the same.
dind-sid_image() {
  local builder=lab-dind-sid-build
  install -Dm755 -t "$WORK/tree/usr/bin" "$LAB"/engine-newest/usr/bin/{containerd,containerd-shim-runc-v2,ctr,docker} \
    "$LAB"/engine-newest/usr/sbin/{dockerd,docker-proxy}
  docker rm -fv $builder 2>/dev/null || true
  docker create --name $builder "$(image_ref dind)"
  tar -C "$WORK/tree" -c usr | docker cp - $builder:/
  docker commit --change "$LABEL" $builder "$REF"
  docker rm -fv $builder
}

# step_image: where a job's commands run: Node 24, the docker CLI with buildx, git, and two users. No kind, no kubectl.
step_image() {
  local root=$WORK/tree
  mkdir "$root"
  tar -C "$LAB/image-root" -c --exclude=./usr/bin/{dockerd,docker-proxy,docker-init,docker-registry,containerd*,ctr} \
    --exclude=./usr/sbin/runc --exclude=./opt/cni --exclude=./usr/lib/systemd --exclude=./usr/lib/udev . | tar -C "$root" -x
  install -m755 -t "$root/usr/local/bin" "$LAB/node24/bin/node"
  install -Dm755 -t "$root/usr/local/lib/docker/cli-plugins" "$LAB/docker-buildx/docker-buildx"
  chroot "$root" useradd --uid 1001 --create-home --shell /bin/bash runner
  import_tree "$root" 'ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' 'CMD ["bash"]'
}

web_image() {
  slim "$WORK/tree"
  install -m755 images/web/web "$WORK/tree/usr/local/bin/web"
  import_tree "$WORK/tree" 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' 'EXPOSE 80/tcp' 'CMD ["web"]'
}

# registry_image: as registry:2 behaves.
registry_image() {
  slim "$WORK/tree" docker-registry
  ln -s docker-registry "$WORK/tree/usr/bin/registry"
  install -m755 images/registry/entrypoint "$WORK/tree/entrypoint.sh"
  install -Dm644 images/registry/config.yml "$WORK/tree/etc/docker/registry/config.yml"
  import_tree "$WORK/tree" 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' 'VOLUME /var/lib/registry' 'EXPOSE 5000/tcp' \
    'ENTRYPOINT ["/entrypoint.sh"]' 'CMD ["/etc/docker/registry/config.yml"]'
}

# buildkit_image: as moby/buildkit behaves.
buildkit_image() {
  slim "$WORK/tree" runc tar unpigz xz mount umount
  ln -s runc "$WORK/tree/usr/sbin/buildkit-runc"
  install -m755 -t "$WORK/tree/usr/bin" "$LAB/buildkitd/buildkitd" "$LAB/buildctl/buildctl"
  import_tree "$WORK/tree" 'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' 'VOLUME /var/lib/buildkit' 'ENTRYPOINT ["buildkitd"]'
}

# buildkit-rootless_image: as moby/buildkit's rootless images behave: BuildKit of a user without rights, in namespaces of its own.
buildkit-rootless_image() {
  local from=$LAB/image-root root=$WORK/tree library loader
  slim "$root" runc tar unpigz xz mount umount
  ln -s runc "$root/usr/sbin/buildkit-runc"
  install -m755 -t "$root/usr/bin" "$LAB/buildkitd/buildkitd" "$LAB/buildctl/buildctl" "$LAB/rootlesskit/rootlesskit"
  install -m755 -t "$root/usr/bin" "$LAB"/uidmap/usr/bin/new{uid,gid}map
  # by file capabilities: Debian's, as setuid programs, lack the CAP_SYS_ADMIN that a container does not give to root
  python3 -c 'import os, struct, sys
for name, bit in ("newuidmap", 7), ("newgidmap", 6):
    os.setxattr(f"{sys.argv[1]}/{name}", "security.capability", struct.pack("<5I", 0x02000001, 1 << bit, 0, 0, 0))' "$root/usr/bin"
  loader=$(echo "$from"/lib64/ld-linux-*.so.?)
  for library in $("$loader" --library-path "$(echo "$from"/lib/*-linux-gnu)" --list "$root/usr/bin/newuidmap" | grep -o "${from}[^ ]*"); do
    [ -e "$root${library#"$from"}" ] || install -D "$(realpath -e "$library")" "$root${library#"$from"}"
  done
  echo 'user:x:1000:1000::/home/user:/bin/sh' >>"$root/etc/passwd"
  echo 'user:100000:65536' | tee "$root/etc/subuid" >"$root/etc/subgid"
  mkdir -p "$root/run/user/1000" "$root"/home/user/.local/{tmp,share/buildkit}
  chown -R 1000:1000 "$root/run/user/1000" "$root/home/user"
  TAR_OPTIONS='--xattrs --xattrs-include=security.capability' import_tree "$root" 'USER 1000:1000' 'ENV HOME=/home/user' 'ENV USER=user' 'ENV XDG_RUNTIME_DIR=/run/user/1000' \
    'ENV TMPDIR=/home/user/.local/tmp' 'ENV BUILDKIT_HOST=unix:///run/user/1000/buildkit/buildkitd.sock' \
    'ENV PATH=/usr/local/bin:/usr/sbin:/usr/bin' 'VOLUME /home/user/.local/share/buildkit' 'ENTRYPOINT ["rootlesskit","buildkitd"]'
}
