import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { afterEach, expect, test } from 'vitest'
import { kindPath, kubectlPath, type ReleasePage, startReleasePage } from './release-page.ts'

let page: ReleasePage | undefined
afterEach(() => page?.close())

test('a file on disk is served with its checksum in the form of each project', async () => {
  const file = import.meta.filename
  const content = await readFile(file)
  const digest = createHash('sha256').update(content).digest('hex')
  page = await startReleasePage({ files: { [kindPath('v1.0.0')]: { file }, [kubectlPath('v1.2.3')]: { file } } })
  const get = async (path: string): Promise<string> => (await fetch(`${page?.url}${path}`)).text()
  expect(await get(kindPath('v1.0.0'))).toBe(content.toString())
  expect(await get(`${kindPath('v1.0.0')}.sha256sum`)).toBe(`${digest}  kind-linux-amd64\n`)
  expect(await get(`${kubectlPath('v1.2.3')}.sha256`)).toBe(digest)
  expect((await fetch(`${page.url}/latest`)).status).toBe(404)
  expect(page.count(kindPath('v1.0.0'))).toBe(1)
})

test('other names and addresses are in the URLs', async () => {
  page = await startReleasePage({ files: {}, address: '0.0.0.0', name: 'localhost' })
  expect(page.templates.kubectl).toMatch(
    /^http:\/\/localhost:\d+\/release\/\{version\}\/bin\/\{os\}\/\{arch\}\/kubectl$/,
  )
  expect((await fetch(`${page.url}/x`)).status).toBe(404)
})
