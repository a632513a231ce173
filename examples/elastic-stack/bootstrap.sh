#!/bin/bash
# Runs as root when an instance of the Elastic CI Stack for AWS starts (its parameter BootstrapScriptUrl): Amazon Linux 2023.
set -euo pipefail
dnf install --assumeyes nodejs20
# The package names its program after its version; kind-in-dind looks for `node`.
command -v node >/dev/null || ln --symbolic "$(command -v node-20)" /usr/local/bin/node
# Nodes take many watchers: https://kind.sigs.k8s.io/docs/user/known-issues/#pod-errors-due-to-too-many-open-files
sysctl --write fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576
