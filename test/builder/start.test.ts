import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { type BuilderCluster, startBuilder } from '../../src/builder/start.ts'
import { Problem } from '../../src/lib/problem.ts'
import { type Stub, stubBuildx } from './stub.ts'

let stub: Stub
afterEach(() => stub.remove())

function start(
  options: { driver?: Record<string, string>; config?: string },
  cluster: Partial<BuilderCluster>,
  wait = true,
  limit = 60_000,
) {
  return startBuilder(
    stub.buildx,
    {
      name: 'b',
      options: { driver: {}, config: undefined, flags: undefined, ...options },
      ...{ kubeconfig: '/job/kubeconfig', folder: stub.folder, wait, limit, registries: [], defaultConfig: undefined },
    },
    {
      makeNamespace: async () => {},
      letPodsBegin: async () => {},
      podsReady: async () => {},
      notReady: async () => [],
      ...cluster,
    },
  )
}

test('it is made for the kubeconfig that later commands have', async () => {
  stub = stubBuildx('echo "$KUBECONFIG" >"$0.kubeconfig"')
  await start({}, {})
  expect(stub.commands().at(-1)).toBe('create --driver=kubernetes --name=b --node=buildkit --bootstrap')
  expect(readFileSync(join(stub.folder, 'buildx.kubeconfig'), 'utf8')).toBe('/job/kubeconfig\n')
})

test('buildx makes it for no pods first, in a configuration that is thrown away; then they may begin', async () => {
  stub = stubBuildx(
    'echo "$BUILDX_CONFIG" >>"$0.config"; ! [ -d "$BUILDX_CONFIG" ] || mkdir "$BUILDX_CONFIG/instances"',
  )
  const begun: [string, number][] = []
  const letPodsBegin = async (...given: [string, number]): Promise<void> => {
    expect(stub.commands()).toEqual([
      'create --driver=kubernetes --name=b --node=buildkit --driver-opt=image=i --driver-opt=replicas=0 --bootstrap',
    ])
    begun.push(given)
  }
  await start({ driver: { image: 'i', replicas: '3' } }, { letPodsBegin })
  expect(begun).toEqual([['default', 3]])
  expect(stub.commands()[1]).toContain('--driver-opt=replicas=3 --bootstrap')
  const [trial = '', own] = readFileSync(join(stub.folder, 'buildx.config'), 'utf8').split('\n')
  expect(trial).toMatch(`${stub.folder}/buildx-`)
  expect(existsSync(trial)).toBe(false)
  expect(own).toBe(process.env['BUILDX_CONFIG'] ?? '')
})

test('its namespace is made before, and is where its pods are looked for', async () => {
  stub = stubBuildx('')
  const seen: string[] = []
  await start(
    { driver: { namespace: 'build' } },
    {
      makeNamespace: async name => void seen.push(`make ${name}`),
      podsReady: async name => void seen.push(`ready ${name}`),
    },
  )
  expect(seen).toEqual(['make build', 'ready build'])
})

test('the default namespace is there', async () => {
  stub = stubBuildx('')
  await start({}, { makeNamespace: () => Promise.reject(new Error('made')) })
})

test('without a wait nothing is started', async () => {
  stub = stubBuildx('')
  const never = () => Promise.reject(new Error('waited'))
  await start({}, { podsReady: never, letPodsBegin: never }, false)
  expect(stub.commands()).toHaveLength(1)
  expect(stub.commands()[0]).not.toContain('--bootstrap')
})

test("a pod that does not start ends the start, though buildx' own wait goes on", async () => {
  stub = stubBuildx('case $* in *replicas=0*) ;; *) sleep 60 ;; esac')
  const held = new Problem('builder: a pod of it does not start')
  await expect(start({}, { podsReady: () => Promise.reject(held) })).rejects.toThrow(held)
})

test('buildx that comes to no end is given up, with what the pods say', async () => {
  stub = stubBuildx('case "$*" in *replicas=0*) exit 0 ;; esac; exec sleep 60')
  await expect(start({}, { notReady: async () => ['pod buildkit-1: Pending'] }, true, 300)).rejects.toThrow(
    new Problem('builder: docker buildx does not start it: it was not through within 0.3s\n  pod buildkit-1: Pending'),
  )
})

test('what buildx has started is ready, whatever it made for it', async () => {
  stub = stubBuildx('')
  let watching: AbortSignal | undefined
  await start({}, { podsReady: (_, signal) => new Promise(() => (watching = signal)) })
  expect(watching?.aborted).toBe(true)
})

test("where buildx gives up first its words come with the pods' own", async () => {
  stub = stubBuildx('echo "ERROR: expected 1 replicas to be ready, got 0" >&2; exit 1')
  const notReady = async (): Promise<string[]> => ['pod buildkit-1: ImagePullBackOff']
  await expect(start({}, { notReady, podsReady: () => new Promise(() => {}) })).rejects.toThrow(
    new Problem(
      'builder: docker buildx does not start it: expected 1 replicas to be ready, got 0\n  pod buildkit-1: ImagePullBackOff',
    ),
  )
})
