import { describe, expect, test } from 'vitest'
import { aroundProxy, hasProxy } from '../../src/engine/proxy.ts'
import type { Environment } from '../../src/host/host.ts'

describe('a job has a proxy', () => {
  test.each<[Environment, boolean]>([
    [{}, false],
    [{ HTTP_PROXY: '' }, false],
    [{ NO_PROXY: 'localhost' }, false],
    [{ HTTP_PROXY: 'http://proxy' }, true],
    [{ https_proxy: 'http://proxy' }, true],
    [{ ALL_PROXY: 'socks5://proxy' }, true],
  ])('%j: %s', (env, expected) => {
    expect(hasProxy(env)).toBe(expected)
  })
})

describe('names are taken around it', () => {
  const proxied = { HTTPS_PROXY: 'http://proxy' }
  test.each<[string, Environment, readonly string[], string | undefined]>([
    ['nothing where there is none', { NO_PROXY: 'a' }, ['docker'], undefined],
    ['where the job takes none around it', proxied, ['docker', '.svc'], 'docker,.svc'],
    ["after the job's own", { ...proxied, NO_PROXY: 'a, .b ,10.0.0.0/8' }, ['docker'], 'a,.b,10.0.0.0/8,docker'],
    ['once each', { ...proxied, NO_PROXY: 'docker,a' }, ['docker', 'docker'], 'docker,a'],
    ['the lower-case variable counts', { ...proxied, NO_PROXY: 'a', no_proxy: 'b' }, ['docker'], 'b,docker'],
    ['an empty one does not', { ...proxied, NO_PROXY: 'a', no_proxy: '' }, ['docker'], 'a,docker'],
    ['no empty names', { ...proxied, NO_PROXY: ',a,' }, [''], 'a'],
  ])('%s', (_, env, names, expected) => {
    expect(aroundProxy(env, names)).toEqual(expected === undefined ? {} : { NO_PROXY: expected, no_proxy: expected })
  })
})
