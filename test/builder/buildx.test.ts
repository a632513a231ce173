import { describe, expect, test } from 'vitest'
import { builderImages, configFlag, createBuilder, errorIn, forgetBuilder } from '../../src/builder/buildx.ts'

const none = { driver: {}, flags: undefined }

describe('the arguments that make a builder', () => {
  test('are for the kubernetes driver, and leave the current builder as it is', () => {
    expect(createBuilder({ name: 'b', options: none, boot: false })).toEqual([
      ...['create', '--driver=kubernetes', '--name=b', '--node=buildkit'],
    ])
  })

  test.each([
    ['replicas', '3', '--driver-opt=replicas=3'],
    ['labels', 'a=b,c=d', '--driver-opt="labels=a=b,c=d"'],
    ['annotations', 'a="b"', '--driver-opt="annotations=a=""b"""'],
    ['namespace', '', '--driver-opt=namespace='],
  ])('have the driver option %s=%s as buildx reads it', (key, value, argument) => {
    expect(createBuilder({ name: 'b', options: { ...none, driver: { [key]: value } }, boot: false }).at(-1)).toBe(
      argument,
    )
  })

  test('have flags and a buildkitd.toml, and start it where that is wanted', () => {
    const configFile = { flag: '--buildkitd-config', path: '/job/buildkitd.toml' } as const
    const options = { ...none, flags: '--debug --root=/x' }
    expect(createBuilder({ name: 'b', options, configFile, boot: true }).slice(4)).toEqual([
      ...['--buildkitd-flags=--debug --root=/x', '--buildkitd-config=/job/buildkitd.toml', '--bootstrap'],
    ])
  })

  test('that forget one ask no API server', () => {
    expect(forgetBuilder('b')).toEqual(['rm', '--keep-daemon', '--force', 'b'])
  })
})

test('a buildkitd.toml has the flag that this buildx has', () => {
  expect(configFlag('  --bootstrap   Boot builder\n  --buildkitd-config string   BuildKit daemon config file')).toBe(
    '--buildkitd-config',
  )
  expect(configFlag('  --config string   BuildKit config file')).toBe('--config')
})

test.each([
  [
    'ERROR: failed to initialize builder b (buildkit): invalid driver option replicaz for driver kubernetes\n',
    'invalid driver option replicaz for driver kubernetes',
  ],
  [
    '#1 booting\n#1 ERROR: no\n------\nERROR: expected 1 replicas to be ready, got 0\n',
    'expected 1 replicas to be ready, got 0',
  ],
  ['error: unknown flag: --node\n', 'unknown flag: --node'],
  ['WARNING: something\nit broke\n', 'it broke'],
  ['', 'it does not say why'],
])('of %j that is what is wrong', (stderr, said) => {
  expect(errorIn(stderr)).toBe(said)
})

test.each([
  [{}, ['moby/buildkit:buildx-stable-1']],
  [{ rootless: 'true' }, ['moby/buildkit:buildx-stable-1-rootless']],
  [{ rootless: '0' }, ['moby/buildkit:buildx-stable-1']],
  [{ rootless: 'true', image: 'mine:1' }, ['mine:1']],
  [{ image: '' }, ['moby/buildkit:buildx-stable-1']],
  [{ 'qemu.install': 'true' }, ['moby/buildkit:buildx-stable-1', 'tonistiigi/binfmt:latest']],
  [{ image: 'mine:1', 'qemu.install': '1', 'qemu.image': 'emulators:1' }, ['mine:1', 'emulators:1']],
  [{ 'qemu.install': 'false', 'qemu.image': 'emulators:1' }, ['moby/buildkit:buildx-stable-1']],
])('with the driver options %j its images are %s', (driver, images) => {
  expect(builderImages({ driver })).toEqual(images)
})
