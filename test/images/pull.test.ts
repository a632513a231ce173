import { describe, expect, test } from 'vitest'
import { pullImage, type Reason, reason } from '../../src/images/pull.ts'
import { messageOf } from '../../src/lib/problem.ts'
import type { Result } from '../../src/lib/run.ts'
import { around, dockerOf, no, ok, worldOf } from './fake-docker.ts'

const X = 'registry.example:5000/team/app:ci'
const LIMIT = no('Error response from daemon: toomanyrequests: You have reached your pull rate limit.\n')

/** Pulls X by these answers: how often, what it failed with, what was said and how long was waited. */
async function pullBy(answers: readonly Result[], given: Parameters<typeof worldOf>[0] = {}, reference = X) {
  const { docker, asked } = dockerOf(...answers)
  const { world, said, slept } = worldOf(given)
  const failure = await pullImage(docker, reference, 'images', world).then(() => '', messageOf)
  return { asked, failure, said, slept }
}

describe('why a pull failed, by what docker says', () => {
  test.each<[Reason, string]>([
    // The classic store: docker 26.
    ['rate limit', 'toomanyrequests: You have reached your pull rate limit. You may increase the limit by upgrading'],
    ['trouble', 'received unexpected HTTP status: 503 Service Unavailable'],
    ['trouble', 'received unexpected HTTP status: 502 Bad Gateway'],
    [
      'denied',
      "pull access denied for team/app, repository does not exist or may require 'docker login': denied: requested access to the resource is denied",
    ],
    ['denied', 'unauthorized: authentication required'],
    ['denied', 'Head "http://registry:5000/v2/team/app/manifests/ci": no basic auth credentials'],
    ['absent', 'manifest for registry:5000/team/app:ci not found: manifest unknown: manifest unknown'],
    ['platform', 'no matching manifest for linux/arm64/v8 in the manifest list entries'],
    ['other', 'Get "http://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused'],
    ['other', 'Get "https://nowhere.example/v2/": dial tcp: lookup nowhere.example on 127.0.0.11:53: no such host'],
    [
      'trouble',
      'Get "https://a/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)',
    ],
    ['trouble', 'Get "https://a/v2/": dial tcp 10.0.0.1:443: i/o timeout'],
    ['trouble', 'Get "https://a/v2/": net/http: TLS handshake timeout'],
    ['trouble', 'Get "https://a/v2/": context deadline exceeded'],
    ['trouble', 'Get "https://a/v2/": dial tcp: lookup a on 10.0.0.1:53: server misbehaving'],
    ['trouble', 'unexpected EOF'],
    ['trouble', 'read tcp 10.0.0.1:1->10.0.0.2:2: read: connection reset by peer'],
    ['plain http', 'Get "https://registry:5000/v2/": http: server gave HTTP response to HTTPS client'],
    // containerd's store: docker 28.
    [
      'rate limit',
      'unknown: failed to resolve reference "r/a:1": unexpected status from HEAD request to http://r/v2/a/manifests/1: 429 Too Many Requests',
    ],
    [
      'trouble',
      'unknown: failed to resolve reference "r/a:1": unexpected status from HEAD request to http://r/v2/a/manifests/1: 503 Service Unavailable',
    ],
    [
      'denied',
      'unknown: failed to resolve reference "r/a:1": unexpected status from HEAD request to http://r/v2/a/manifests/1: 403 Forbidden',
    ],
    [
      'denied',
      'unknown: failed to resolve reference "r/a:1": unexpected status from HEAD request to http://r/v2/a/manifests/1: 401 Unauthorized',
    ],
    [
      'denied',
      'failed to resolve reference "r/a:1": pull access denied, repository does not exist or may require authorization: authorization failed: no basic auth credentials',
    ],
    ['absent', 'failed to resolve reference "docker.io/team/app:ci": docker.io/team/app:ci: not found'],
    [
      'other',
      'failed to resolve reference "a/b:1": failed to do request: Head "https://a/v2/b/manifests/1": dial tcp: lookup a on 127.0.0.11:53: no such host',
    ],
  ])('%s: %s', (why, said) => {
    expect(reason(`Error response from daemon: ${said}\n`, 'registry:5000/team/app:ci')).toBe(why)
  })

  test("a repository's name is none", () => {
    expect(reason('manifest for team/denied-timeout:1 not found: manifest unknown', 'team/denied-timeout:1')).toBe(
      'absent',
    )
    expect(reason('Get "https://a/v2/team/timeout/x": no such host', 'a.example/team/timeout:1')).toBe('other')
  })
})

describe('a pull', () => {
  test('that works is one, and says how long it took', async () => {
    const { asked, failure, said } = await pullBy([ok()])
    expect(failure).toBe('')
    expect(asked).toEqual([`pull ${X}`])
    expect(said).toEqual([`Pulling ${X}`, expect.stringMatching(/^Pulled registry\.example:5000\/team\/app:ci in \d/)])
  })

  test.each([
    ['a rate limit', LIMIT],
    [
      'trouble of the registry',
      no('Error response from daemon: received unexpected HTTP status: 503 Service Unavailable'),
    ],
  ])('that meets %s twice is tried a third time, each after a longer pause', async (_, answer) => {
    const { asked, failure, said, slept } = await pullBy([answer, answer, ok()])
    expect(failure).toBe('')
    expect(asked).toHaveLength(3)
    expect(slept).toEqual([2000, 8000])
    expect(said[1]).toMatch(/; trying again in 2\.0s$/)
  })

  test('that meets a rate limit to the end says so, with what raises it', async () => {
    const { asked, failure } = await pullBy([LIMIT, LIMIT, LIMIT])
    expect(asked).toHaveLength(3)
    expect(failure).toBe(
      `images: the engine cannot pull ${X} in 3 tries: toomanyrequests: You have reached your pull rate limit.; that is a rate limit: log in to registry.example:5000 (docker login in a step before this one, or DOCKER_CONFIG), or name a mirror (registry-mirrors)`,
    )
  })

  test.each([
    [
      'the registry denies',
      'unauthorized: authentication required',
      /: unauthorized: authentication required; log in to registry\.example:5000 \(docker login .*\), or build it on this engine \(tcp:\/\/docker:2375\) in a step before this one$/,
    ],
    [
      'the registry lacks',
      'manifest for x not found: manifest unknown: manifest unknown',
      /; build it on this engine \(/,
    ],
    [
      'is not there for this platform',
      'no matching manifest for linux/arm64/v8 in the manifest list entries',
      /; name an image for the platform/,
    ],
    [
      'is out of reach',
      'lookup registry: no such host',
      /; it is the engine, not this step, that must reach the registry: name an/,
    ],
    [
      'is behind plain HTTP',
      'http: server gave HTTP response to HTTPS client',
      /; the registry speaks plain HTTP: .* insecure-registries$/,
    ],
  ])('of what %s fails at once, with what to do', async (_, said, sentence) => {
    const { asked, failure, slept } = await pullBy([no(`a\nError response from daemon: ${said}\n`)])
    expect(asked).toHaveLength(1)
    expect(slept).toEqual([])
    expect(failure).toMatch(/^images: the engine cannot pull registry\.example:5000\/team\/app:ci: /)
    expect(failure).toMatch(sentence)
  })
})

describe('a credential helper that is not there', () => {
  const config = '/home/me/.docker/config.json'
  const env = { HOME: '/home/me', PATH: '/usr/bin' }
  const denied = no('Error response from daemon: no basic auth credentials')
  const helpers = JSON.stringify({ credHelpers: { 'registry.example:5000': 'ecr-login' } })

  test('is named where the registry wants a login', async () => {
    const { failure } = await pullBy([denied], { around: around(env, { [config]: helpers }) })
    expect(failure).toContain(
      `no basic auth credentials; put the credential helper docker-credential-ecr-login, which ${config} names for registry.example:5000, on PATH: it is not there, or build`,
    )
  })

  test('is not named where it is there, or where the failure is another', async () => {
    const files = { [config]: helpers, '/usr/bin/docker-credential-ecr-login': '' }
    expect((await pullBy([denied], { around: around(env, files) })).failure).toContain(
      '; log in to registry.example:5000',
    )
    const absent = no('manifest unknown')
    expect((await pullBy([absent], { around: around(env, { [config]: helpers }) })).failure).not.toContain('helper')
  })
})

test('another engine that has the image is named, with the one that the cluster is on', async () => {
  const given = { elsewhere: async (of: string) => (of === 'app:latest' ? ['unix:///x (the default socket)'] : []) }
  expect((await pullBy([no('manifest unknown')], given, 'app')).failure).toMatch(
    /; another engine has it: unix:\/\/\/x \(the default socket\), while the cluster is on tcp:\/\/docker:2375: use one engine/,
  )
  expect((await pullBy([no('manifest unknown')], given, 'web')).failure).not.toContain('another engine')
})
