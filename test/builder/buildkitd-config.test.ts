import { expect, test } from 'vitest'
import { flagsWithConfig, mirroredRegistries, ownRegistry, withRegistries } from '../../src/builder/buildkitd-config.ts'
import type { Mirror } from '../../src/registry-mirrors.ts'

const own = { host: 'reg:5000', plain: true, mirrors: [] }
const hub = { host: 'docker.io', plain: false, mirrors: ['mirror.example', 'reg:5000'] }

test('nothing to say is no file', () => {
  expect(withRegistries(undefined, [])).toBeUndefined()
})

test('registries are tables of their own, after what the user wrote', () => {
  expect(withRegistries('debug = true\n\n', [own, hub])).toBe(
    'debug = true\n\n[registry."reg:5000"]\n  http = true\n\n[registry."docker.io"]\n  mirrors = ["mirror.example","reg:5000"]\n',
  )
})

test.each(['[registry."docker.io"]', "[registry.'docker.io']", '  [ registry . "docker.io" ] # mine'])(
  'a registry that the user has is left as it is: %s',
  line => {
    const config = `${line}\nmirrors = ["theirs"]\n`
    expect(withRegistries(config, [hub])).toBe(config)
  },
)

test.each([
  [{}, undefined, undefined],
  [{}, '--debug', '--debug'],
  [{ rootless: 'true' }, undefined, '--config=/etc/buildkit/buildkitd.toml'],
  [{ rootless: 'true' }, '--debug', '--debug --config=/etc/buildkit/buildkitd.toml'],
  [{ rootless: 'true' }, '--debug --config /mine.toml', '--debug --config /mine.toml'],
])('with the driver options %j and the flags %j a BuildKit with a file has the flags %j', (driver, flags, expected) => {
  expect(flagsWithConfig({ driver, flags })).toBe(expected)
})

test('a registry is said once, whoever says it first', () => {
  expect(withRegistries(undefined, [own, { ...own, plain: false, mirrors: ['x'] }])).toBe(
    '[registry."reg:5000"]\n  http = true\n',
  )
})

test("the job's registry is reached by each of its names, by way of the one that pods know", () => {
  expect(ownRegistry({ engine: 'localhost:25001', step: 'docker:25001', internal: 'reg:5000' })).toEqual([
    { host: 'reg:5000', plain: true, mirrors: [] },
    { host: 'localhost:25001', plain: false, mirrors: ['reg:5000'] },
    { host: 'docker:25001', plain: false, mirrors: ['reg:5000'] },
  ])
})

test('mirrors stand with their registries, in order, and say of themselves how they are to be spoken to', () => {
  const mirror = (given: Partial<Mirror>): Mirror => ({
    ...{ upstream: 'docker.io', scheme: 'https', host: 'm.example', path: '', credentials: undefined, ca: undefined },
    ...given,
  })
  const mirrors = [
    mirror({ ca: 'PEM' }),
    mirror({ scheme: 'http', host: '10.0.0.1:5000', path: 'hub' }),
    mirror({ upstream: 'ghcr.io' }),
  ]
  expect(mirroredRegistries(mirrors.slice(0, 2), () => '/job/ca.pem')).toEqual([
    { host: 'docker.io', plain: false, mirrors: ['m.example', '10.0.0.1:5000/hub'] },
    { host: 'm.example', plain: false, mirrors: [], ca: '/job/ca.pem' },
    { host: '10.0.0.1:5000', plain: true, mirrors: [] },
  ])
  expect(mirroredRegistries(mirrors.slice(2), () => '')).toEqual([
    { host: 'ghcr.io', plain: false, mirrors: ['m.example'] },
  ])
})
