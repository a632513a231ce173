# What comes from Debian: packages of the machine itself, the engine, and the root filesystem of the images.

# need PROGRAM PACKAGE ...: installs the packages whose program this machine lacks.
need() {
  local missing=()
  while [ $# -gt 0 ]; do
    command -v "$1" >/dev/null || missing+=("$2")
    shift 2
  done
  [ ${#missing[@]} = 0 ] || logged "Debian packages ${missing[*]}" install_packages "${missing[@]}"
}

install_packages() {
  apt-get -qq update
  DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
}

# debian_mirror: where apt itself gets Debian from, whichever way its sources are written.
debian_mirror() {
  local uri
  uri=$(debian_targets)
  if [ -z "$uri" ]; then
    apt-get -qq update >&2
    uri=$(debian_targets)
  fi
  [ -n "$uri" ] || die "apt knows no Debian mirror: add one to its sources"
  printf '%s\n' "${uri%/}"
}

debian_targets() {
  apt-get indextargets --format "\$(REPO_URI)" 'Created-By: Packages' 'Label: Debian' 'Component: main' | sort -u | head -n 1
}

# fetch_debs PACKAGE/RELEASE...: downloads packages of any release, and unpacks them into $OUT without installing them.
fetch_debs() {
  local apt=$LAB/apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg mirror release deb
  mirror=$(debian_mirror)
  mkdir -p "$apt"/lists/partial "$apt"/cache/archives/partial
  for release in "$DEBIAN" "$ENGINE_DEBIAN"; do
    printf 'deb [signed-by=%s] %s %s main\n' "$keyring" "$mirror" "$release"
  done >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root -qq)
  apt-get "${options[@]}" update
  mkdir "$OUT/debs" && cd "$OUT/debs"
  apt-get "${options[@]}" download "$@"
  for deb in *.deb; do dpkg -x "$deb" "$OUT"; done
  cd "$OUT" && rm -r debs
}

engine_part() {
  local packages=("docker.io/$ENGINE_DEBIAN" "containerd/$ENGINE_DEBIAN" "docker-cli/$ENGINE_DEBIAN"
    "containernetworking-plugins/$ENGINE_DEBIAN" "docker-registry/$ENGINE_DEBIAN" "tini/$ENGINE_DEBIAN" "runc/$DEBIAN")
  part engine "$(key "$(declare -f fetch_debs)" "${packages[@]}")" fetch_debs "${packages[@]}"
  PATH=$LAB/engine/usr/bin:$LAB/engine/usr/sbin:$PATH
}

# newest_engine PACKAGE/RELEASE...: from the newest release, in place of the one that the lab's own engine is from.
newest_engine() { ENGINE_DEBIAN=$NEWEST_DEBIAN fetch_debs "$@"; }

# newest_engine_part: only what runs on the C library of the images; runc and tini of the newest release do not.
newest_engine_part() {
  local packages=("docker.io/$NEWEST_DEBIAN" "containerd/$NEWEST_DEBIAN" "docker-cli/$NEWEST_DEBIAN")
  part engine-newest "$(key "$(declare -f fetch_debs newest_engine)" "${packages[@]}")" newest_engine "${packages[@]}"
}

# uidmap_part: newuidmap and newgidmap, for the one image that has them.
uidmap_part() {
  local packages=("uidmap/$DEBIAN")
  part uidmap "$(key "$(declare -f fetch_debs)" "${packages[@]}")" fetch_debs "${packages[@]}"
}

# go_part: a Go compiler, where this machine has none that is new enough.
go_part() {
  local version
  version=$(go env GOVERSION 2>/dev/null | sed -n 's/^go1\.\([0-9]*\).*/\1/p' || true)
  [ "${version:-0}" -lt 24 ] || return 0
  local packages=("golang-1.24-go/$ENGINE_DEBIAN" "golang-1.24-src/$ENGINE_DEBIAN")
  part go-compiler "$(key "$(declare -f fetch_debs)" "${packages[@]}")" fetch_debs "${packages[@]}"
  PATH=$LAB/go-compiler/usr/lib/go-1.24/bin:$PATH
}

# the union of what the images need; each image takes its share of it
ROOT_PACKAGES=systemd,systemd-sysv,dbus,iproute2,iptables,conntrack,ethtool,socat,procps,kmod,ca-certificates,curl,jq
ROOT_PACKAGES+=,hostname,ebtables,runc,git,openssl,busybox-static,pigz,zstd,xz-utils

root_filesystem() {
  # debootstrap complains about a folder that others may not search
  chmod 755 "$OUT"
  debootstrap --variant=minbase "--include=$ROOT_PACKAGES" "$DEBIAN" "$OUT" "$(debian_mirror)"
  rm -rf "$OUT"/var/cache/apt/* "$OUT"/var/lib/apt/lists/* "$OUT"/usr/share/{doc,locale,man,info,lintian}/*
  rm -f "$OUT"/etc/resolv.conf "$OUT"/etc/hostname
}

root_part() { part rootfs "$(key "$(declare -f root_filesystem)" "$DEBIAN" "$ROOT_PACKAGES")" root_filesystem; }

# image_root: the root filesystem with the engine's programs in it, from which every image is cut.
image_root() {
  cp -a "$LAB/rootfs/." "$OUT"
  install -m755 -t "$OUT/usr/bin" "$LAB"/engine/usr/bin/{containerd,containerd-shim-runc-v2,ctr,docker,docker-registry} \
    "$LAB"/engine/usr/sbin/{dockerd,docker-proxy}
  install -m755 "$LAB/engine/usr/bin/tini-static" "$OUT/usr/bin/docker-init"
  install -Dm755 -t "$OUT/opt/cni/bin" "$LAB"/engine/usr/lib/cni/{bridge,host-local,loopback,portmap,ptp}
}

image_root_part() {
  part image-root "$(key "$(declare -f image_root)" "$(readlink "$LAB/rootfs")" "$(readlink "$LAB/engine")")" image_root
}
