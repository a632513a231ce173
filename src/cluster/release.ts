/** Release pages: where kind, kubectl and buildx are downloaded from, and what such a page answers. Pure. */
import { Problem } from '../lib/problem.ts'
import type { DownloadName } from '../options.ts'

export interface ReleasePage {
  /** A URL with {version}, {os} and {arch} in it. */
  readonly template: string
  /** The checksum file: what its name has after the program's, or the name of one beside it. */
  readonly checksumFile: string
}

/** The projects' own release pages. A mirror has other templates and the same suffixes. */
export const RELEASE_PAGES: Readonly<Record<Exclude<DownloadName, 'node'>, ReleasePage>> = {
  kind: {
    template: 'https://github.com/kubernetes-sigs/kind/releases/download/{version}/kind-{os}-{arch}',
    checksumFile: '.sha256sum',
  },
  kubectl: {
    template: 'https://dl.k8s.io/release/{version}/bin/{os}/{arch}/kubectl',
    checksumFile: '.sha256',
  },
  buildx: {
    template: 'https://github.com/docker/buildx/releases/download/{version}/buildx-{version}.{os}-{arch}',
    checksumFile: 'checksums.txt',
  },
}

/** A system as Go and the release pages name it. */
export interface Platform {
  readonly os: 'linux' | 'darwin'
  readonly arch: 'amd64' | 'arm64'
}

/**
 * @param node the step's `process.platform` and `process.arch`
 * @throws Problem where the projects release nothing that runs here
 */
export function platformOf(node: { readonly os: string; readonly arch: string }): Platform {
  const os = node.os === 'linux' || node.os === 'darwin' ? node.os : undefined
  const arch = node.arch === 'x64' ? 'amd64' : node.arch === 'arm64' ? 'arm64' : undefined
  if (os === undefined || arch === undefined) {
    throw new Problem(
      `this step runs on ${node.os} ${node.arch}, for which no programs are installed; run it on Linux or macOS, x64 or arm64`,
    )
  }
  return { os, arch }
}

/**
 * The URL of a program.
 *
 * @param version such as v1.2.3; where a template writes the v itself (`/v{version}/`), it is not there twice
 * @throws Problem where the template makes no URL
 */
export function downloadUrl(template: string, version: string, platform: Platform): string {
  const url = template
    .replace(OWN_V, '{version}')
    .replaceAll('{version}', version)
    .replaceAll('{os}', platform.os)
    .replaceAll('{arch}', platform.arch)
  return checkedUrl(url)
}

function checkedUrl(url: string): string {
  if (!URL.canParse(url)) throw new Problem(`download-url: ${url} is not a URL`)
  return url
}

/** A v that is the template's own, not the end of a word. */
const OWN_V = /(?<![a-z0-9])v\{version\}/gi

/** The URL of the checksum file beside a program; a query stays at the end. */
export function checksumUrl(url: string, checksumFile: string): string {
  const parsed = new URL(url)
  if (checksumFile.startsWith('.')) parsed.pathname += checksumFile
  else parsed.pathname = parsed.pathname.replace(/[^/]*$/, checksumFile)
  return parsed.href
}

/**
 * Where a release page says which release is its latest: `latest` in the place of the version. GitHub has it at
 * /releases/latest, beside /releases/download/{version}, and so has a mirror of it.
 */
export function latestUrl(template: string): string {
  const plain = template.replace(OWN_V, '{version}')
  const before = plain.slice(0, plain.indexOf('{version}'))
  return checkedUrl(`${before.replace(/\/download\/$/, '/')}latest`)
}

/**
 * Reads what the page at `latestUrl` answered: GitHub's JSON (it gives that to who accepts JSON), its page of the release,
 * or the bare version, as a mirror made of files has it.
 *
 * @returns a version such as v0.33.0, or undefined
 */
export function releaseIn(answer: string): string | undefined {
  const bare = /^\s*v?(\d+\.\d+\.\d+)\s*$/.exec(answer)
  const named =
    /"tag_name"\s*:\s*"v?(\d+\.\d+\.\d+)"/.exec(answer) ?? /\/releases\/tag\/v?(\d+\.\d+\.\d+)\b/.exec(answer)
  const number = (bare ?? named)?.[1]
  return number === undefined ? undefined : `v${number}`
}

/**
 * Reads a checksum file: the digest alone (kubectl), or lines of digest and file name as sha256sum writes them (kind).
 * A single line counts whatever name it has, since a mirror may name its files anew.
 *
 * @returns 64 lower-case hexadecimal digits, or undefined where the text is no checksum file for that file
 */
export function checksumIn(text: string, fileName: string): string | undefined {
  const lines = text
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
    .map(line => /^([0-9a-f]{64})(?:\s+\*?(\S+))?$/i.exec(line))
  const line = lines.length === 1 ? lines[0] : lines.find(match => match?.[2] === fileName)
  return line?.[1]?.toLowerCase()
}

/** What a download turned out to be. */
export interface Content {
  /** The first bytes, as Latin-1. */
  readonly head: string
  /** Bytes. */
  readonly size: number
  readonly sha256: string
}

/** Names a content that is not what it should be, so that people see at once what a mirror sent. */
export function describeContent(content: Content): string {
  if (content.size === 0) return 'an empty file'
  if (/^(\xef\xbb\xbf)?\s*<(!doctype\s+html|html|head|body)\b/i.test(content.head)) return 'an HTML page'
  if (/^(\xef\xbb\xbf)?\s*<(\?xml|error)\b/i.test(content.head)) return 'an XML document'
  if (/^\s*[{[]\s*"/.test(content.head)) return 'a JSON document'
  return `a file of ${content.size} bytes with the sha256 ${content.sha256}`
}

/** A URL for the log: without a user, a password or a query, any of which may be secret. */
export function shownUrl(url: string): string {
  const { origin, pathname } = new URL(url)
  return `${origin}${pathname}`
}

/**
 * Splits the user and password off a URL, since the http client sends them only as a header.
 *
 * @returns the URL without them, and the Authorization header, if any
 */
export function authorized(url: string): { readonly url: string; readonly authorization: string | undefined } {
  const parsed = new URL(url)
  const { username, password } = parsed
  if (username === '' && password === '') return { url, authorization: undefined }
  parsed.username = ''
  parsed.password = ''
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
  return { url: parsed.href, authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
}
