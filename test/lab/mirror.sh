# The mirror: a registry on the address of docker0 that stands in for the public one, for engines inside containers.

MIRROR=http://$GATEWAY:5000

# mirror: the container, then every image that its storage lacks. The storage is a plain folder, so it outlives the engine.
mirror() {
  local image running
  image=$(docker image inspect --format '{{.Id}}' "$(image_ref registry)")
  running=$(docker inspect --format '{{.Image}} {{.State.Running}}' lab-mirror 2>/dev/null || true)
  if [ "$running" != "$image true" ]; then
    docker rm -fv lab-mirror >/dev/null 2>&1 || true
    logged "mirror without old blobs" prune_mirror
    docker run -d --name lab-mirror --restart always --network host \
      -e "REGISTRY_HTTP_ADDR=$GATEWAY:5000" -e REGISTRY_LOG_LEVEL=warn -v "$LAB/mirror:/var/lib/registry" \
      "$(image_ref registry)" >/dev/null
  fi
  local name ref id tags refs=() end=$((SECONDS + 20))
  until curl -sf "$MIRROR/v2/" >/dev/null; do
    [ $SECONDS -lt $end ] || die "the mirror on $MIRROR does not answer: docker logs lab-mirror"
    sleep 0.1
  done
  for name in "${IMAGE_NAMES[@]}"; do refs+=("$(image_ref "$name")"); done
  # shellcheck disable=SC2016 # a template's variable
  tags=$(docker image inspect --format '{{$id := .Id}}{{range .RepoTags}}{{println . $id}}{{end}}' "${refs[@]}")
  while read -r ref id; do
    case " ${refs[*]} " in *" $ref "*) ;; *) continue ;; esac
    local done=$LAB/mirror/pushed/${ref//\//-}
    [ "$(cat "$done" 2>/dev/null)" = "$id" ] && [ -d "$LAB/mirror/docker/registry/v2/repositories/${ref%:*}" ] && continue
    logged "mirror of $ref" push "$ref"
    mkdir -p "${done%/*}" && echo "$id" >"$done"
  done <<<"$tags"
}

# prune_mirror: removes manifests without a tag and blobs without a manifest. Only while no mirror runs: one that does
# would go on saying that it has them.
prune_mirror() {
  [ ! -d "$LAB/mirror/docker" ] || docker run --rm --network none -v "$LAB/mirror:/var/lib/registry" "$(image_ref registry)" \
    garbage-collect --delete-untagged /etc/docker/registry/config.yml
}

# push IMAGE: what `docker save` writes is an OCI layout. Its blobs go into the mirror as they are: `docker push` would
# compress them, which costs more than it saves between two programs on one machine, at both ends.
push() {
  local ref=$1 repository=${1%:*} tag=${1##*:} layout=$LAB/making/push manifest digest
  rm -rf "$layout" && mkdir -p "$layout"
  docker save "$ref" | tar -C "$layout" -x
  manifest=$(jq -r '.manifests[0].digest' "$layout/index.json")
  manifest=$layout/blobs/sha256/${manifest#*:}
  for digest in $(jq -r '.config.digest, .layers[].digest' "$manifest"); do
    upload "$repository" "$digest" "$layout/blobs/sha256/${digest#*:}"
  done
  curl -sSf -X PUT -H "Content-Type: $(jq -r .mediaType "$manifest")" --data-binary "@$manifest" "$MIRROR/v2/$repository/manifests/$tag"
  rm -rf "$layout"
}

# upload REPOSITORY DIGEST FILE
upload() {
  local location
  ! curl -sf -o /dev/null --head "$MIRROR/v2/$1/blobs/$2" || return 0
  location=$(curl -sSf -X POST -D - -o /dev/null "$MIRROR/v2/$1/blobs/uploads/" | tr -d '\r' | sed -n 's/^[Ll]ocation: //p')
  curl -sSf -X PUT -H 'Content-Type: application/octet-stream' -T "$3" "$location&digest=$2"
}
