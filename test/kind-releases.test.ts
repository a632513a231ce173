import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { formatReleases, imageIn, releasesFrom } from '../scripts/kind-releases.ts'
import { KIND_CHECKSUMS, NODE_IMAGES } from '../src/cluster/kind-releases.ts'

const file = readFileSync(join(import.meta.dirname, '../src/cluster/kind-releases.ts'), 'utf8')
const digest = `sha256:${'a'.repeat(64)}`

test('releases come newest first, without those that are old or none', () => {
  expect(releasesFrom('sigs.k8s.io/kind v0.9.0 v0.20.0 v0.33.0 v0.33.1-alpha v0.100.0 v0.19.0\n')).toEqual([
    'v0.100.0',
    'v0.33.0',
    'v0.20.0',
  ])
})

test('the node image is read from the source of a release', () => {
  expect(imageIn('v9.9.9', `const Image = "kindest/node:v1.40.1@${digest}"`)).toEqual({
    kind: 'v9.9.9',
    kubernetes: '1.40.1',
    digest,
  })
  expect(() => imageIn('v9.9.9', 'const Image = "kindest/node:latest"')).toThrow('kind v9.9.9 names no node image')
})

test('the file is what its own data make of it', () => {
  expect(formatReleases(file, NODE_IMAGES, KIND_CHECKSUMS)).toBe(file)
})

test('a newer release becomes the pin, with its checksums and its row', () => {
  const row = { kind: 'v9.9.9', kubernetes: '1.40.1', digest }
  const written = formatReleases(file, [row, ...NODE_IMAGES], { 'linux-amd64': 'b'.repeat(64) })
  expect(written).toContain("export const KIND = 'v9.9.9'")
  expect(written).toContain(`{\n  'linux-amd64': '${'b'.repeat(64)}',\n}`)
  expect(written).toContain(`[\n  {\n    kind: 'v9.9.9',`)
  expect(written.split('kubernetes: ').length).toBe(file.split('kubernetes: ').length + 1)
})

test('checksums that cannot be read now are not lost for the same release, and not kept for another', () => {
  const known = formatReleases(file, NODE_IMAGES, { 'linux-amd64': 'b'.repeat(64) })
  expect(formatReleases(known, NODE_IMAGES, {})).toBe(known)
  const row = { kind: 'v9.9.9', kubernetes: '1.40.1', digest }
  expect(formatReleases(known, [row, ...NODE_IMAGES], {})).not.toContain('b'.repeat(64))
})
