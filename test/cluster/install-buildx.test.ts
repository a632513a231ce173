import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { installBuildx } from '../../src/cluster/install-buildx.ts'
import { BUILDX } from '../../src/cluster/versions.ts'
import { createRunner } from '../../src/lib/run.ts'
import { buildxPath, type ReleasePage, startReleasePage } from '../release-page.ts'

let page: ReleasePage
let folder: string
beforeEach(async () => {
  page = await startReleasePage({ files: { [buildxPath(BUILDX)]: 'the program' } })
  folder = await mkdtemp(join(tmpdir(), 'buildx-'))
})
afterEach(async () => {
  await page.close()
  await rm(folder, { recursive: true })
})

const install = () =>
  installBuildx({
    ...{ runner: createRunner({ env: {} }), now: Date.now, platform: { os: 'linux', arch: 'x64' } },
    ...{ log: { info: () => {}, debug: () => {}, warning: () => {} }, cacheFolder: undefined, folder },
    url: page.templates.buildx,
  })

test('buildx comes from its release page, once', async () => {
  const { path, version } = await install()
  await install()
  expect(version).toBe(BUILDX)
  expect(await readFile(path, 'utf8')).toBe('the program')
  expect(page.count(buildxPath(BUILDX))).toBe(1)
})

test('it is verified by the one checksum file of its release', async () => {
  await page.close()
  page = await startReleasePage({
    files: {
      [buildxPath(BUILDX)]: 'another one',
      [`/buildx/${BUILDX}/checksums.txt`]: `${'a'.repeat(64)} *buildx-${BUILDX}.linux-amd64\n`,
    },
  })
  await expect(install()).rejects.toThrow(/^download-url: what \S+ sent is not what its checksum file promises/)
})
