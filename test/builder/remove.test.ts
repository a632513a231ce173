import { existsSync, mkdirSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  buildxFolder,
  dockerFolder,
  linkedBuildx,
  linkPlugin,
  missingPaths,
  pluginLink,
} from '../../src/builder/config-folder.ts'
import { removeBuilder, removeLeftBuilders } from '../../src/builder/remove.ts'
import { Problem } from '../../src/lib/problem.ts'
import { aPlan } from '../builders.ts'
import { type Stub, stubBuildx } from './stub.ts'

/** Forgets as buildx does: what carries the builder's name goes. */
const FORGET = 'for name; do :; done; rm -r "$BUILDX_CONFIG"/*/"$name"'

let stub: Stub
let folder: string
let env: Record<string, string>
beforeEach(() => {
  stub = stubBuildx(FORGET)
  folder = join(stub.folder, 'docker/buildx')
  env = { DOCKER_CONFIG: join(stub.folder, 'docker') }
})
afterEach(() => stub.remove())

/** What buildx leaves in its folder when a builder was made and used. */
function used(name: string): void {
  for (const part of ['instances', 'defaults', 'activity', 'refs']) mkdirSync(join(folder, part), { recursive: true })
  mkdirSync(join(folder, 'refs', name))
  for (const file of ['.lock', '.buildNodeID', `instances/${name}`, `activity/${name}`])
    writeFileSync(join(folder, file), '')
}

function tree(): string[] {
  return existsSync(stub.folder)
    ? readdirSync(stub.folder, { recursive: true, encoding: 'utf8' })
        .filter(path => path.startsWith('docker'))
        .sort()
    : []
}

const remove = (missing: readonly string[]) =>
  removeBuilder(stub.buildx, { name: 'ours', fetched: undefined, configFolder: folder, missing })

describe("buildx' configuration is as it was", () => {
  test('where there was none, twice', async () => {
    const missing = missingPaths(env)
    used('ours')
    await remove(missing)
    await remove(missing)
    expect(tree()).toEqual([])
    expect(stub.commands()).toEqual(['rm --keep-daemon --force ours'])
  })

  test('where the user had a builder that had built nothing yet', async () => {
    used('theirs')
    for (const path of ['refs', '.buildNodeID']) rmSync(join(folder, path), { recursive: true })
    const before = tree()
    const missing = missingPaths(env)
    used('ours')
    await remove(missing)
    expect(tree()).toEqual(before)
  })

  test('where the job has made another one since, which stays with what it needs', async () => {
    const missing = missingPaths(env)
    used('ours')
    used('theirs')
    await remove(missing)
    expect(tree()).toEqual(expect.arrayContaining(['docker/buildx/instances/theirs', 'docker/buildx/.lock']))
    expect(tree()).not.toContain('docker/buildx/instances/ours')
  })

  test('and what others have put there stays', async () => {
    const missing = missingPaths(env)
    used('ours')
    writeFileSync(join(folder, 'current'), '{}')
    await remove(missing)
    expect(tree()).toEqual(['docker', 'docker/buildx', 'docker/buildx/current'])
  })
})

test('where buildx fails it says what to do', async () => {
  used('ours')
  stub.remove()
  stub = stubBuildx('echo "ERROR: locked" >&2; exit 1')
  folder = join(stub.folder, 'docker/buildx')
  used('ours')
  await expect(remove([])).rejects.toThrow(
    new Problem('builder: buildx does not forget ours (locked); docker buildx rm --keep-daemon ours does'),
  )
})

describe('of what killed jobs left, without a folder that tells of it', () => {
  const HOUR = 3_600_000
  const NOW = Date.UTC(2026, 0, 1)
  const left = (uses: Parameters<typeof removeLeftBuilders>[2] = []) => removeLeftBuilders(stub.buildx, env, uses, NOW)
  const instances = (): string[] => readdirSync(join(folder, 'instances')).sort()

  /** A builder as buildx notes it. */
  function noted(name: string, { age = 0, kubeconfig = join(stub.folder, 'gone') } = {}): void {
    used(name)
    const path = join(folder, 'instances', name)
    const Endpoint = `kubernetes:///${name}?deployment=buildkit&kubeconfig=${encodeURIComponent(kubeconfig)}`
    writeFileSync(path, JSON.stringify({ Name: name, Driver: 'kubernetes', Nodes: [{ Name: 'buildkit', Endpoint }] }))
    utimesSync(path, (NOW - age) / 1000, (NOW - age) / 1000)
  }

  test('a builder goes whose job is over by its record on the engine', async () => {
    const plans = [{ name: 'given' }, {}].map(options =>
      aPlan({ options, builder: { fetched: undefined, configFolder: folder, missing: [] } }),
    )
    for (const { builder } of plans) noted(builder?.name ?? '')
    noted('kind-in-dind-live-2')
    expect(await left(plans)).toEqual([])
    expect(instances()).toEqual(['kind-in-dind-live-2'])
  })

  test('one goes that is older than any job, where its kubeconfig is not there', async () => {
    const kubeconfig = join(stub.folder, 'kubeconfig')
    writeFileSync(kubeconfig, '')
    noted('kind-in-dind-old', { age: 6 * HOUR })
    noted('kind-in-dind-young', { age: 5 * HOUR })
    noted('kind-in-dind-kept', { age: 7 * HOUR, kubeconfig })
    noted('theirs', { age: 7 * HOUR })
    used('kind-in-dind-of-another-kind')
    expect(await left()).toEqual([])
    expect(instances()).toEqual(['kind-in-dind-kept', 'kind-in-dind-of-another-kind', 'kind-in-dind-young', 'theirs'])
  })

  test('the buildx that was fetched for it goes with the last one', async () => {
    const program = '/cache/kind-in-dind-buildx/1/amd64/buildx'
    linkPlugin({ program, link: pluginLink(env) })
    expect(linkedBuildx(env)).toEqual({ program, link: pluginLink(env) })
    for (const use of ['1', '2']) noted(`kind-in-dind-over-${use}`)
    await left([{ cluster: 'over', use: '1' }])
    expect(linkedBuildx(env)).toBeDefined()
    await left([{ cluster: 'over', use: '2' }])
    expect(linkedBuildx(env)).toBeUndefined()
  })

  test('there is nothing to do where buildx was never used', async () => {
    expect(await left([{ cluster: 'over', use: '1' }])).toEqual([])
    expect(existsSync(folder)).toBe(false)
  })
})

test('the link to a buildx that was fetched goes too, where it is still ours', async () => {
  const missing = missingPaths(env)
  const fetched = { program: '/tools/buildx', link: pluginLink(env) }
  expect(linkPlugin(fetched)).toBeUndefined()
  expect(linkPlugin(fetched)).toBeUndefined()
  expect(linkPlugin({ ...fetched, program: '/other' })).toContain('EEXIST')
  await removeBuilder(stub.buildx, {
    name: 'ours',
    fetched: { ...fetched, program: '/other' },
    configFolder: folder,
    missing: [],
  })
  expect(tree()).toContain('docker/cli-plugins/docker-buildx')
  await removeBuilder(stub.buildx, { name: 'ours', fetched, configFolder: folder, missing })
  expect(tree()).toEqual([])
})

test.each([
  [{ HOME: '/home/me' }, '/home/me/.docker', '/home/me/.docker/buildx'],
  [{ HOME: '/home/me', DOCKER_CONFIG: '/d' }, '/d', '/d/buildx'],
  [{ HOME: '/home/me', DOCKER_CONFIG: '/d', BUILDX_CONFIG: '/b' }, '/d', '/b'],
])('with %j the folders are %s and %s', (env, docker, buildx) => {
  expect([dockerFolder(env), buildxFolder(env)]).toEqual([docker, buildx])
})
