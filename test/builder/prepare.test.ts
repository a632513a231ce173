import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { judgeBuilder } from '../../src/builder/prepare.ts'
import { Problem } from '../../src/lib/problem.ts'
import { type Stub, stubBuildx } from './stub.ts'

const options = { driver: { replicas: '3' }, config: undefined, flags: undefined }
let stub: Stub
afterEach(() => stub.remove())

test('options that buildx takes are fine, and nothing is left of its trial', async () => {
  // What it is given must be there while it runs.
  stub = stubBuildx('test -f "$KUBECONFIG" && mkdir "$BUILDX_CONFIG" && cp "$KUBECONFIG" "$0.kubeconfig"')
  await judgeBuilder(stub.buildx, options, join(stub.folder, 'job'))
  expect(stub.commands()).toEqual(['create --driver=kubernetes --name=trial --node=buildkit --driver-opt=replicas=3'])
  expect(JSON.parse(readFileSync(join(stub.folder, 'buildx.kubeconfig'), 'utf8'))).toMatchObject({ kind: 'Config' })
  expect(readdirSync(join(stub.folder, 'job'))).toEqual([])
})

test("what buildx refuses is told in buildx' words, and nothing is left either", async () => {
  stub = stubBuildx('echo "ERROR: failed to initialize builder trial (buildkit): invalid driver option x" >&2; exit 1')
  await expect(judgeBuilder(stub.buildx, options, join(stub.folder, 'job'))).rejects.toThrow(
    new Problem('builder: docker buildx refuses it: invalid driver option x'),
  )
  expect(readdirSync(join(stub.folder, 'job'))).toEqual([])
})

test.each([
  ['--buildkitd-config', 'echo "--buildkitd-config string"'],
  ['--config', 'echo "--config string"'],
])('a buildkitd.toml is judged too, by the flag %s', async (flag, help) => {
  stub = stubBuildx(`case $* in *--help) ${help} ;; *) for last; do :; done; cp "\${last#*=}" "$0.toml" ;; esac`)
  await judgeBuilder(stub.buildx, { driver: {}, config: 'debug = true\n', flags: undefined }, join(stub.folder, 'job'))
  expect(stub.commands()[1]).toContain(` ${flag}=${join(stub.folder, 'job')}/`)
  expect(readFileSync(join(stub.folder, 'buildx.toml'), 'utf8')).toBe('debug = true\n')
})
