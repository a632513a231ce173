import { describe, expect, test } from 'vitest'
import { KIND, NODE_IMAGES } from '../../src/cluster/kind-releases.ts'
import { doubt, hasDnsSearch, kubernetesVersionOf, nodeImage, SUPPORTED, skew } from '../../src/cluster/versions.ts'
import { Problem } from '../../src/lib/problem.ts'

const numbers = (version: string): number[] => version.replace(/^v/, '').split('.').map(Number)
const isAfter = (a: string, b: string): boolean => {
  const [left, right] = [numbers(a), numbers(b)]
  const at = left.findIndex((part, index) => part !== right[index])
  return at >= 0 && (left[at] ?? 0) > (right[at] ?? 0)
}

describe('the table of node images', () => {
  test('has the pinned kind first, then older ones, each with a version and a digest', () => {
    expect(NODE_IMAGES[0]?.kind).toBe(KIND)
    for (const [index, row] of NODE_IMAGES.entries()) {
      expect(row.kind).toMatch(/^v0\.\d+\.\d+$/)
      expect(row.kubernetes).toMatch(/^1\.\d+\.\d+$/)
      expect(row.digest).toMatch(/^sha256:[0-9a-f]{64}$/)
      const before = NODE_IMAGES[index - 1]
      if (before) {
        expect(isAfter(before.kind, row.kind), `${before.kind} before ${row.kind}`).toBe(true)
        expect(isAfter(row.kubernetes, before.kubernetes), `${row.kind} has a newer image`).toBe(false)
      }
    }
    expect(new Set(NODE_IMAGES.map(row => row.digest)).size).toBe(NODE_IMAGES.length)
  })

  test('has every minor that the pinned kind supports', () => {
    const [oldest, newest] = [SUPPORTED.oldest, SUPPORTED.newest].map(minor => Number(minor.split('.')[1]))
    for (let minor = oldest ?? 0; minor <= (newest ?? 0); minor++) {
      expect(nodeImage({ kind: 'version', version: `1.${minor}` }, KIND).kubernetesVersion).toMatch(`v1.${minor}.`)
    }
  })
})

describe('nodeImage', () => {
  test.each([
    ['1.34', 'v1.34.0', '7416a61b'],
    ['1.34.0', 'v1.34.0', '7416a61b'],
    ['1.32', 'v1.32.2', 'f2263459'],
    ['1.32.0', 'v1.32.0', 'c48c62ea'],
    // Two kind releases have it; the newer one's image is taken.
    ['1.33.1', 'v1.33.1', '05007225'],
    ['1.27', 'v1.27.3', '3966ac76'],
  ])('%s is %s', (version, kubernetesVersion, digest) => {
    const image = nodeImage({ kind: 'version', version }, KIND)
    expect(image.kubernetesVersion).toBe(kubernetesVersion)
    expect(image.reference).toMatch(new RegExp(`^kindest/node:${kubernetesVersion}@sha256:${digest}[0-9a-f]{56}$`))
  })

  test.each(['1.99', '1.34.4', '1.3', '2.34', '1.28'])('%s is not there, and the error lists what is', version => {
    const pick = () => nodeImage({ kind: 'version', version }, KIND)
    expect(pick).toThrow(Problem)
    expect(pick).toThrow(
      `kubernetes-version: there is no node image for ${version} in the table, which has 1.37.0, 1.36.1, 1.35.0, 1.34.0, 1.33.1, 1.32.2, 1.32.0, 1.31.2,`,
    )
    expect(pick).toThrow('node-image')
  })

  test.each([
    ['the pinned kind', KIND, 'v1.37.0', 'a1ed56cf'],
    ['another release', 'v0.28.0', 'v1.33.1', '8d866994'],
    ['a patch release that the table lacks', 'v0.30.4', 'v1.34.0', '7416a61b'],
    ['a release newer than the table', 'v0.99.0', 'v1.37.0', 'a1ed56cf'],
    ['a build of one’s own', 'v0.32.0-alpha.12+0123456789abcd', 'v1.36.1', '3489c767'],
    ['a release older than the table', 'v0.8.1', 'v1.27.3', '3966ac76'],
  ])('without a choice, %s gets its own image or the one before it', (_, kind, kubernetesVersion, digest) => {
    const image = nodeImage({ kind: 'default' }, kind)
    expect(image.kubernetesVersion).toBe(kubernetesVersion)
    expect(image.reference).toContain(`@sha256:${digest}`)
  })

  test('an image that was given stays as it is', () => {
    const reference = 'registry.example:5000/node:v1.34.4-ci'
    expect(nodeImage({ kind: 'image', reference }, KIND)).toEqual({ reference, kubernetesVersion: 'v1.34.4' })
  })
})

test.each([
  ['kindest/node:v1.34.0', 'v1.34.0'],
  [`kindest/node:v1.34.0@sha256:${'0'.repeat(64)}`, 'v1.34.0'],
  ['registry.example:5000/kind/node:v1.34.12_debug', 'v1.34.12'],
  ['kindest/node:latest', undefined],
  ['kindest/node:v1.34', undefined],
  ['kindest/node', undefined],
  [`registry.example:5000/node@sha256:${'0'.repeat(64)}`, undefined],
])('the version in %s is %s', (reference, version) => {
  expect(kubernetesVersionOf(reference)).toBe(version)
})

test.each([
  [KIND, true],
  ['v0.18.0', true],
  ['v0.17.0', false],
  ['v0.34.0-alpha+1a2b3c', true],
  // A build of one's own.
  ['devel', true],
])('kind %s has networking.dnsSearch: %s', (kind, has) => {
  expect(hasDnsSearch(kind)).toBe(has)
})

test.each([
  ['v1.37.0', KIND, undefined],
  ['v1.31.2', KIND, undefined],
  ['v1.30.0', KIND, 'kind v0.33.0 goes with Kubernetes 1.31 to 1.37, and this is 1.30'],
  ['v1.38.0', KIND, 'Kubernetes 1.38 is newer than kind v0.33.0'],
  ['v1.34.0', 'v0.29.0', 'Kubernetes 1.34 is newer than kind v0.29.0, which goes with 1.33 at most'],
  ['v1.33.7', 'v0.29.0', undefined],
  // Nothing is known about a kind that the table lacks.
  ['v1.38.0', 'v0.34.0', undefined],
])('the doubt about Kubernetes %s with kind %s is: %s', (kubernetes, kind, said) => {
  if (said === undefined) expect(doubt(kubernetes, kind)).toBeUndefined()
  else expect(doubt(kubernetes, kind)).toContain(said)
})

test.each([
  ['v1.34.4', 'v1.34.0', false],
  ['v1.33.1', 'v1.34.0', false],
  ['v1.35.0', 'v1.34.0', false],
  ['v1.32.4-dispatcher', 'v1.34.0', true],
  ['v1.36.0', 'v1.34.0', true],
  ['v0.0.0', 'v1.34.0', false],
])('kubectl %s beside Kubernetes %s is too far: %s', (kubectl, kubernetes, far) => {
  if (far) expect(skew(kubectl, kubernetes)).toMatch(/2 minors from .*kubectl-version v1\.34\.0 installs/)
  else expect(skew(kubectl, kubernetes)).toBeUndefined()
})
