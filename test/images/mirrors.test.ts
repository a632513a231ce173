import { describe, expect, test } from 'vitest'
import { mirrorFiles, nodeMirrors } from '../../src/images/mirrors.ts'
import { type Mirror, readMirror } from '../../src/registry-mirrors.ts'

const CA = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'
const mirror = (line: string): Mirror => readMirror(line, path => (path === 'ca.pem' ? CA : undefined))
const contents = (...lines: string[]): Record<string, string> =>
  Object.fromEntries(mirrorFiles(lines.map(mirror)).map(({ path, content }) => [path, content]))

describe("the nodes' files", () => {
  test('name the mirrors of a registry in order, and the registry itself last', () => {
    expect(
      contents('docker.io=https://one.example', 'quay.io=https://q.example', 'docker.io=http://10.0.0.1:5000'),
    ).toEqual({
      '/etc/containerd/certs.d/docker.io/hosts.toml': `server = "https://registry-1.docker.io"

[host."https://one.example"]
  capabilities = ["pull", "resolve"]

[host."http://10.0.0.1:5000"]
  capabilities = ["pull", "resolve"]
`,
      '/etc/containerd/certs.d/quay.io/hosts.toml': `server = "https://quay.io"

[host."https://q.example"]
  capabilities = ["pull", "resolve"]
`,
    })
  })

  test('have credentials as a header, a CA as a file beside them, and a folder as containerd wants it', () => {
    const files = contents('registry.example:5000=https://me:p%3As@mirror.example/a/b ca=ca.pem')
    expect(files).toEqual({
      '/etc/containerd/certs.d/registry.example:5000/hosts.toml': `server = "https://registry.example:5000"

[host."https://mirror.example/v2/a/b"]
  capabilities = ["pull", "resolve"]
  override_path = true
  ca = "mirror-1.pem"
[host."https://mirror.example/v2/a/b".header]
  Authorization = "Basic ${Buffer.from('me:p:s').toString('base64')}"
`,
      '/etc/containerd/certs.d/registry.example:5000/mirror-1.pem': CA,
    })
  })

  test('are none without mirrors', () => {
    expect(mirrorFiles([])).toEqual([])
  })
})

describe("the engine's own mirrors", () => {
  test("are the nodes' too, behind those that were asked for, each once", () => {
    const asked = [mirror('docker.io=https://me:secret@one.example'), mirror('quay.io=https://q.example')]
    const all = nodeMirrors(asked, ['https://one.example/', 'http://10.213.0.1:5000/', 'https://q.example'])
    expect(all.slice(0, 2)).toEqual(asked)
    expect(all.slice(2)).toEqual([mirror('docker.io=http://10.213.0.1:5000'), mirror('docker.io=https://q.example')])
  })

  test.each(['http://localhost:5000', 'http://127.0.0.1:5000/', 'https://[::1]:5000', 'nonsense'])(
    'but for %s, which is no place that nodes reach',
    url => {
      expect(nodeMirrors([], [url])).toEqual([])
    },
  )
})
