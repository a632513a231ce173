import { describe, expect, test } from 'vitest'
import {
  authorized,
  checksumIn,
  checksumUrl,
  describeContent,
  downloadUrl,
  latestUrl,
  platformOf,
  RELEASE_PAGES,
  releaseIn,
  shownUrl,
} from '../../src/cluster/release.ts'
import { Problem } from '../../src/lib/problem.ts'

const linux = { os: 'linux', arch: 'amd64' } as const
const A = 'a'.repeat(64)
const B = 'b'.repeat(64)

describe('the project’s own pages', () => {
  test('kind', () => {
    const url = downloadUrl(RELEASE_PAGES.kind.template, 'v0.33.0', linux)
    expect(url).toBe('https://github.com/kubernetes-sigs/kind/releases/download/v0.33.0/kind-linux-amd64')
    expect(checksumUrl(url, RELEASE_PAGES.kind.checksumFile)).toBe(`${url}.sha256sum`)
    expect(latestUrl(RELEASE_PAGES.kind.template)).toBe('https://github.com/kubernetes-sigs/kind/releases/latest')
  })

  test('kubectl', () => {
    const url = downloadUrl(RELEASE_PAGES.kubectl.template, 'v1.34.0', { os: 'darwin', arch: 'arm64' })
    expect(url).toBe('https://dl.k8s.io/release/v1.34.0/bin/darwin/arm64/kubectl')
    expect(checksumUrl(url, RELEASE_PAGES.kubectl.checksumFile)).toBe(`${url}.sha256`)
  })

  test('buildx, whose releases have one checksum file for all programs', () => {
    const url = downloadUrl(RELEASE_PAGES.buildx.template, 'v0.29.1', linux)
    expect(url).toBe('https://github.com/docker/buildx/releases/download/v0.29.1/buildx-v0.29.1.linux-amd64')
    expect(checksumUrl(url, RELEASE_PAGES.buildx.checksumFile)).toBe(
      'https://github.com/docker/buildx/releases/download/v0.29.1/checksums.txt',
    )
  })
})

test.each([
  [
    'https://m.example/{version}/kind-{os}-{arch}',
    'https://m.example/v0.33.0/kind-linux-amd64',
    'https://m.example/latest',
  ],
  ['https://m.example/v{version}/{arch}/{os}', 'https://m.example/v0.33.0/amd64/linux', 'https://m.example/latest'],
  ['https://m.example/dev-{version}', 'https://m.example/dev-v0.33.0', 'https://m.example/dev-latest'],
  [
    'https://m.example/gh/releases/download/{version}/kind',
    'https://m.example/gh/releases/download/v0.33.0/kind',
    'https://m.example/gh/releases/latest',
  ],
  ['https://m.example/{version}/{version}?t=1', 'https://m.example/v0.33.0/v0.33.0?t=1', 'https://m.example/latest'],
])('the mirror %s', (template, url, latest) => {
  expect(downloadUrl(template, 'v0.33.0', linux)).toBe(url)
  expect(latestUrl(template)).toBe(latest)
})

test('a template that makes no URL is named', () => {
  expect(() => downloadUrl('https://[/{version}', 'v1.2.3', linux)).toThrow(
    new Problem('download-url: https://[/v1.2.3 is not a URL'),
  )
  expect(() => latestUrl('https://[/{version}')).toThrow(new Problem('download-url: https://[/latest is not a URL'))
})

test('a checksum file is beside the program, before the query', () => {
  expect(checksumUrl('https://m.example/kind?token=1', '.sha256sum')).toBe('https://m.example/kind.sha256sum?token=1')
})

test.each([
  ['{"id":1,"tag_name":"v0.33.0","update_url":"/x"}', 'v0.33.0'],
  ['<html><meta property="og:url" content="/kubernetes-sigs/kind/releases/tag/v0.33.0">', 'v0.33.0'],
  ['v0.33.0\n', 'v0.33.0'],
  ['0.33.0', 'v0.33.0'],
  ['<html>Please log in. jquery v3.7.1</html>', undefined],
  ['{"tag_name":"nightly"}', undefined],
  ['', undefined],
])('the latest release in %j is %s', (answer, release) => {
  expect(releaseIn(answer)).toBe(release)
})

test.each([
  ['a digest alone', A, A],
  ['a digest and a line break', `${A}\n`, A],
  ['sha256sum’s line', `${A}  kind-linux-amd64\n`, A],
  ['sha256sum’s line of binary mode', `${A} *kind-linux-amd64\r\n`, A],
  ['upper case', A.toUpperCase(), A],
  ['one line with another name', `${A}  kind\n`, A],
  ['several lines', `${A}  kind-darwin-amd64\n${B}  kind-linux-amd64\n`, B],
  ['several lines without this file', `${A}  kind-darwin-amd64\n${B}  kind-darwin-arm64\n`, undefined],
  ['an HTML page', '<!DOCTYPE html>\n<html></html>', undefined],
  ['a digest that is too short', 'a'.repeat(63), undefined],
  ['nothing', '', undefined],
])('the checksum in %s', (_, text, checksum) => {
  expect(checksumIn(text, 'kind-linux-amd64')).toBe(checksum)
})

test.each([
  ['', 0, 'an empty file'],
  ['<!DOCTYPE html><html>', 90, 'an HTML page'],
  ['\xef\xbb\xbf\n  <HTML lang="en">', 90, 'an HTML page'],
  ['<?xml version="1.0"?><Error>', 90, 'an XML document'],
  ['{"errors": []}', 14, 'a JSON document'],
  ['\x7fELF', 90, `a file of 90 bytes with the sha256 ${A}`],
])('content that begins with %j is called what it is', (head, size, called) => {
  expect(describeContent({ head, size, sha256: A })).toBe(called)
})

test.each([
  ['linux', 'x64', 'linux', 'amd64'],
  ['linux', 'arm64', 'linux', 'arm64'],
  ['darwin', 'arm64', 'darwin', 'arm64'],
])('%s %s is %s %s', (os, arch, goOs, goArch) => {
  expect(platformOf({ os, arch })).toEqual({ os: goOs, arch: goArch })
})

test.each([
  ['win32', 'x64'],
  ['linux', 'ia32'],
])('%s %s is refused, with what there is', (os, arch) => {
  expect(() => platformOf({ os, arch })).toThrow(Problem)
  expect(() => platformOf({ os, arch })).toThrow(`${os} ${arch}`)
  expect(() => platformOf({ os, arch })).toThrow('Linux or macOS')
})

test('what may be secret in a URL is not shown, and its user goes into a header', () => {
  const url = 'https://me:p%40ss@m.example:8443/kind?token=secret'
  expect(shownUrl(url)).toBe('https://m.example:8443/kind')
  expect(authorized(url)).toEqual({
    url: 'https://m.example:8443/kind?token=secret',
    authorization: `Basic ${Buffer.from('me:p@ss').toString('base64')}`,
  })
  expect(authorized('https://m.example/kind')).toEqual({ url: 'https://m.example/kind', authorization: undefined })
})
