import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { endpointsInReach, findEndpoints, isLoopback, isPrivate, type Surroundings } from '../../src/engine/find.ts'

interface World {
  readonly env?: Record<string, string>
  readonly names?: Record<string, readonly string[]>
  readonly files?: Record<string, string>
  readonly folders?: readonly string[]
}

function around({ env = {}, names = {}, files = {}, folders = [] }: World): Surroundings {
  return {
    env,
    resolve: async name => names[name] ?? [],
    readFile: path => files[path],
    exists: path => path in files || folders.includes(path),
  }
}

const work = createHash('sha256').update('work').digest('hex')
const workContext = {
  '/home/me/.docker/config.json': '{"currentContext": "work"}',
  [`/home/me/.docker/contexts/meta/${work}/meta.json`]: '{"Endpoints": {"docker": {"Host": "tcp://work:2376"}}}',
}
const sidecar = { docker: ['172.18.0.2'] }

describe('where the engine is looked for', () => {
  test.each<[string, string | undefined, World, readonly string[], string]>([
    [
      'docker-host wins over DOCKER_HOST',
      'tcp://a:1',
      { env: { DOCKER_HOST: 'tcp://b:2' } },
      ['tcp://a:1'],
      'docker-host',
    ],
    [
      'DOCKER_HOST wins over the name docker',
      undefined,
      { env: { DOCKER_HOST: 'tcp://b:2' }, names: sidecar },
      ['tcp://b:2'],
      'DOCKER_HOST',
    ],
    [
      'a docker context wins over the name docker',
      undefined,
      { env: { HOME: '/home/me' }, files: workContext, names: sidecar },
      ['tcp://work:2376'],
      'the docker context work',
    ],
    [
      'the name docker is asked with TLS first, then plain, and wins over a socket',
      undefined,
      { names: sidecar, folders: ['/var/run/docker.sock'] },
      ['tcp://docker:2376', 'tcp://docker:2375'],
      'the name docker',
    ],
    [
      'a name docker out on the Internet is nobody of ours',
      undefined,
      { names: { docker: ['93.184.216.34'] } },
      ['unix:///var/run/docker.sock'],
      'the default socket',
    ],
    ['the local socket comes last', undefined, {}, ['unix:///var/run/docker.sock'], 'the default socket'],
    [
      'the default context is no context',
      undefined,
      { env: { HOME: '/home/me' }, files: { '/home/me/.docker/config.json': '{"currentContext": "default"}' } },
      ['unix:///var/run/docker.sock'],
      'the default socket',
    ],
  ])('%s', async (_, dockerHost, world, addresses, source) => {
    const found = await findEndpoints(dockerHost, around(world))
    expect(found.map(({ address }) => address)).toEqual(addresses)
    expect(found[0]?.source).toBe(source)
  })
})

describe('the variables for it', () => {
  const only = async (dockerHost: string | undefined, world: World) =>
    (await findEndpoints(dockerHost, around(world)))[0]

  test('a plain address has no TLS variables', async () => {
    const endpoint = await only(undefined, { env: { DOCKER_HOST: 'tcp://docker:2375' } })
    expect(endpoint?.env).toEqual({ DOCKER_HOST: 'tcp://docker:2375' })
    expect(endpoint?.exported).toBe(false)
  })

  test('DOCKER_TLS_VERIFY makes it TLS with the certificates of DOCKER_CERT_PATH', async () => {
    const env = { DOCKER_HOST: 'tcp://docker:2376', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/here' }
    expect((await only(undefined, { env }))?.env).toEqual(env)
  })

  test('without DOCKER_CERT_PATH the shared folder of docker:dind is taken, and exported', async () => {
    const env = { DOCKER_HOST: 'tcp://docker:2376', DOCKER_TLS_VERIFY: '1', HOME: '/home/me' }
    const endpoint = await only(undefined, { env, folders: ['/certs/client'] })
    expect(endpoint?.env.DOCKER_CERT_PATH).toBe('/certs/client')
    expect(endpoint?.exported).toBe(true)
  })

  test("without either it is the docker CLI's own folder", async () => {
    const env = { DOCKER_HOST: 'tcp://docker:2376', DOCKER_TLS_VERIFY: '1', HOME: '/home/me' }
    expect((await only(undefined, { env }))?.env.DOCKER_CERT_PATH).toBe('/home/me/.docker')
  })

  test('what was found by its name is exported', async () => {
    expect((await only(undefined, { names: sidecar }))?.exported).toBe(true)
  })
})

describe('what cannot be used is refused', () => {
  test.each<[string, World, RegExp]>([
    [
      'ssh',
      { env: { DOCKER_HOST: 'ssh://me@there' } },
      /^DOCKER_HOST: ssh:\/\/me@there is no engine that can be used here/,
    ],
    [
      'a context that is not there',
      { env: { HOME: '/h', DOCKER_CONTEXT: 'gone' } },
      /^DOCKER_CONTEXT: there is no docker context gone/,
    ],
  ])('%s', async (_, world, sentence) => {
    await expect(findEndpoints(undefined, around(world))).rejects.toThrow(sentence)
  })
})

test.each([
  ['10.1.2.3', true, false],
  ['172.16.0.1', true, false],
  ['172.32.0.1', false, false],
  ['192.168.1.1', true, false],
  ['100.64.0.1', true, false],
  ['127.0.0.53', true, true],
  ['8.8.8.8', false, false],
  ['::1', true, true],
  ['fd00::1', true, false],
  ['2001:db8::1', false, false],
])('%s is private: %s, loopback: %s', (address, priv, loopback) => {
  expect(isPrivate(address)).toBe(priv)
  expect(isLoopback(address)).toBe(loopback)
})

describe('every engine in reach', () => {
  test.each<[string, World, readonly string[]]>([
    ['is the socket at least', {}, ['unix:///var/run/docker.sock']],
    [
      'comes by each way of finding one, once',
      { env: { HOME: '/home/me', DOCKER_HOST: 'tcp://docker:2376' }, files: workContext, names: sidecar },
      ['tcp://docker:2376', 'tcp://work:2376', 'tcp://docker:2375', 'unix:///var/run/docker.sock'],
    ],
    [
      'leaves out ways that lead nowhere',
      { env: { HOME: '/home/me', DOCKER_CONTEXT: 'gone', DOCKER_HOST: 'ssh://far' } },
      ['unix:///var/run/docker.sock'],
    ],
  ])('%s', async (_, world, addresses) => {
    expect((await endpointsInReach(around(world))).map(({ address }) => address)).toEqual(addresses)
  })
})
