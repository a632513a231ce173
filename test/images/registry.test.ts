import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, test } from 'vitest'
import { registryConfigMap } from '../../src/cluster/registry-hosting.ts'
import { runRegistry } from '../../src/engine/containers.ts'
import type { Docker } from '../../src/engine/docker.ts'
import { awaitRegistry, registryHosts, registryNames, startRegistry } from '../../src/images/registry.ts'
import type { Result } from '../../src/lib/run.ts'
import { aPlan } from '../builders.ts'

const plan = aPlan({ options: { name: 'c', registry: { port: undefined } } })
const ok = (stdout = ''): Result => ({ code: 0, stdout, stderr: '' })
const no = (stderr: string): Result => ({ code: 125, stdout: '', stderr })

/** An engine on which some ports are held. */
function engine(held: readonly number[], published = '') {
  const asked: string[] = []
  const answer = async (args: readonly string[]): Promise<Result> => {
    asked.push(args.join(' '))
    if (args[0] === 'ps') return ok(published)
    const port = held.find(each => args.join(' ').includes(`:${each}:5000`))
    return port === undefined ? ok() : no(`Bind for 127.0.0.1:${port} failed: port is already allocated`)
  }
  return { docker: { try: answer, run: answer } as unknown as Docker, asked }
}

const wish = { port: undefined, listenAddress: '172.18.0.2', taken: [] }

describe('the registry', () => {
  test("is one container on the cluster's network, found by its labels, with a volume that goes with it", () => {
    const args = runRegistry(plan, { name: 'c-registry', image: 'registry:1', listenAddress: '172.18.0.2', port: 5001 })
    expect(args).toEqual([
      ...['run', '--detach', '--pull=never', '--name=c-registry', '--network=kind-in-dind-c'],
      '--volume=/var/lib/registry',
      ...Object.entries(plan.labels).flatMap(([key, value]) => ['--label', `${key}=${value}`]),
      ...['--publish=127.0.0.1:5001:5000', '--publish=172.18.0.2:5001:5000'],
      ...['--env=OTEL_TRACES_EXPORTER=none', 'registry:1'],
    ])
  })

  test.each([
    ['127.0.0.1', ['--publish=127.0.0.1:5001:5000']],
    ['0.0.0.0', ['--publish=0.0.0.0:5001:5000']],
    ['fd00::2', ['--publish=127.0.0.1:5001:5000', '--publish=[fd00::2]:5001:5000']],
  ])('is published for a step that reaches %s, and for the engine', (listenAddress, flags) => {
    const args = runRegistry(plan, { name: 'c-registry', image: 'registry:1', listenAddress, port: 5001 })
    expect(args.filter(arg => arg.startsWith('--publish'))).toEqual(flags)
  })

  test('gets a port that nobody has or asked for', async () => {
    const ports = [20_001, 20_002, 20_003]
    const { docker, asked } = engine([20_002])
    const picked = await startRegistry(docker, plan, { ...wish, taken: [20_001] }, () => ports.shift() ?? 0)
    expect(picked).toBe(20_003)
    expect(asked.map(line => line.split(' ')[0])).toEqual(['run', 'rm', 'run'])
    expect(asked[1]).toBe('rm --force --volumes c-registry')
  })

  test('gets the port that the user wants, or an error that says who has it', async () => {
    expect(await startRegistry(engine([]).docker, plan, { ...wish, port: 5001 })).toBe(5001)
    const { docker } = engine([5001], 'old|127.0.0.1:5001->5000/tcp')
    await expect(startRegistry(docker, plan, { ...wish, port: 5001 })).rejects.toThrow(
      "registry: the engine's port 5001 is held by the container old; end that, or write registry: true and a free one is picked",
    )
  })

  test('is not tried for ever, nor where another port would not help', async () => {
    const { docker, asked } = engine([7])
    await expect(startRegistry(docker, plan, wish, () => 7)).rejects.toThrow(
      /^registry: the engine cannot run it: .*:7 /,
    )
    expect(asked.filter(line => line.startsWith('run'))).toHaveLength(10)
    const full = { try: async () => no('no space left on device') } as unknown as Docker
    await expect(startRegistry(full, plan, wish)).rejects.toThrow('registry: the engine cannot run it: no space left')
  })
})

describe('its names', () => {
  test('are one for the engine, one for the step and one for the network', () => {
    expect(registryNames('c-registry', 25_001, { host: 'docker', inside: false })).toEqual({
      engine: 'localhost:25001',
      step: 'docker:25001',
      internal: 'c-registry:5000',
    })
  })

  test("are two where the step is on the cluster's network itself", () => {
    expect(registryNames('c-registry', 25_001, { host: 'c-control-plane', inside: true }).step).toBe('c-registry:5000')
  })

  test('lead nodes to it, each of them, and its loopback address too', () => {
    const files = registryHosts(registryNames('c-registry', 25_001, { host: 'docker', inside: false }))
    expect(files.map(({ path }) => path)).toEqual(
      ['localhost:25001', '127.0.0.1:25001', 'docker:25001', 'c-registry:5000'].map(
        name => `/etc/containerd/certs.d/${name}/hosts.toml`,
      ),
    )
    for (const { content } of files) {
      expect(content).toBe('server = "http://c-registry:5000"\n\n[host."http://c-registry:5000"]\n')
    }
    expect(registryHosts(registryNames('c-registry', 25_001, { host: 'localhost', inside: false }))).toHaveLength(3)
  })

  test('are in a ConfigMap where tools look for it', () => {
    const hosting = {
      host: 'localhost:25001',
      hostFromContainerRuntime: 'c-registry:5000',
      hostFromClusterNetwork: 'c-registry:5000',
      help: 'https://a.example',
    }
    const { metadata, data } = registryConfigMap(hosting)
    expect(metadata).toEqual({ name: 'local-registry-hosting', namespace: 'kube-public' })
    expect(JSON.parse(data['localRegistryHosting.v1'])).toEqual(hosting)
  })
})

describe('waiting for it', () => {
  const { signal } = new AbortController()

  test('ends when it answers', async () => {
    let asked = 0
    const server = http.createServer((request, response) => {
      expect(request.url).toBe('/v2/')
      response.statusCode = ++asked < 3 ? 503 : 200
      response.end()
    })
    await new Promise<void>(resolve => void server.listen(0, '127.0.0.1', resolve))
    const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
    await awaitRegistry({} as Docker, plan, address, signal)
    expect(asked).toBe(3)
    server.close()
  })

  test('ends at its limit with what was met and what the registry said', async () => {
    const docker = { try: async () => ({ code: 0, stdout: '', stderr: 'panic: no space left' }) } as unknown as Docker
    // Port 9 is nobody's.
    await expect(awaitRegistry(docker, plan, '127.0.0.1:9', signal, 0)).rejects.toThrow(
      /^registry: it does not answer this step at 127\.0\.0\.1:9 within .* \(ECONNREFUSED\); it logged last:\npanic: no space left$/,
    )
  })
})
