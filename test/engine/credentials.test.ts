import { describe, expect, test } from 'vitest'
import { missingHelper } from '../../src/engine/credentials.ts'

const HOME = '/home/me/.docker/config.json'

/** What is missing of a registry's helper; PATH is /bin:/usr/bin, and the file of docker's config holds this. */
function missing(registry: string, config: unknown, there: readonly string[] = [], env: Record<string, string> = {}) {
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  return missingHelper(registry, {
    env: { HOME: '/home/me', PATH: '/bin:/usr/bin', ...env },
    readFile: path =>
      path === (env['DOCKER_CONFIG'] ? `${env['DOCKER_CONFIG']}/config.json` : HOME) ? text : undefined,
    exists: path => there.includes(path),
  })
}

describe('a credential helper', () => {
  test.each<[string, string, unknown, string]>([
    [
      'of one registry',
      'registry.example:5000',
      { credHelpers: { 'registry.example:5000': 'ecr-login' } },
      'ecr-login',
    ],
    ['of all registries', 'registry.example', { credsStore: 'desktop' }, 'desktop'],
    [
      'of one goes before that of all',
      'a.example',
      { credsStore: 'desktop', credHelpers: { 'a.example': 'gcr' } },
      'gcr',
    ],
    ['of another does not', 'b.example', { credsStore: 'desktop', credHelpers: { 'a.example': 'gcr' } }, 'desktop'],
    ['of Docker Hub', 'docker.io', { credHelpers: { 'https://index.docker.io/v1/': 'pass' } }, 'pass'],
  ])('%s is missed', (_, registry, config, helper) => {
    expect(missing(registry, config)).toEqual({ program: `docker-credential-${helper}`, config: HOME })
    expect(missing(registry, config, [`/usr/bin/docker-credential-${helper}`])).toBeUndefined()
  })

  test.each([
    ['there is none', { auths: { 'a.example': { auth: 'bWU6c2VjcmV0' } } }],
    ['it is of another registry', { credHelpers: { 'b.example': 'gcr' } }],
    ['the config is empty', ''],
    ['the config is no JSON', '{"credsStore": "desk'],
    ['the config is not what docker writes', '[]'],
  ])('is not missed where %s', (_, config) => {
    expect(missing('a.example', config)).toBeUndefined()
  })

  test('is that of DOCKER_CONFIG', () => {
    expect(missing('a.example', { credsStore: 'x' }, [], { DOCKER_CONFIG: '/config' })?.config).toBe(
      '/config/config.json',
    )
  })
})
