# What the lab is made of. A part is built anew when its line here, its recipe or a part it is made from changes.
KUBERNETES=1.34.4
ETCD=v3.6.5
COREDNS=v1.12.1
CRICTL=v1.34.0
KIND=v0.33.0
BUILDX=v0.38.2 # wants a newer Go than Debian's, which Go fetches by itself
COMPOSE=v2.38.2 # newer ones want a newer Go than Debian's
BUILDKIT=v0.24.0
ROOTLESSKIT=v2.3.5
BUILDKITE_AGENT=v3.62.0 # newer ones need a module that was not to be had when this was written
ACT=0.2.89
NODE=24.11.1
DEBIAN=bookworm        # the root filesystem of every image
ENGINE_DEBIAN=trixie   # dockerd, containerd and the registry: bookworm's docker.io asks for CAP_SYS_RESOURCE
NEWEST_DEBIAN=sid      # the engine of one more sidecar image: what sid has on the day it is built
