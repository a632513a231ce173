/**
 * A release page for tests: a real HTTP server with the paths of kind's, kubectl's and buildx' pages, a count of what it was asked
 * for, and faults that are switched on by path.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, dirname } from 'node:path'

/** What a path has: its content, or a file on disk. */
export type Served = string | Buffer | { readonly file: string }

/** What goes wrong; `times` says how often (always, where it is absent). */
export type Fault = { readonly times?: number } & (
  | { readonly kind: 'status'; readonly status: number }
  /** A page for people, with status 200: captive portals, proxies, mirrors behind a login. */
  | { readonly kind: 'html' }
  /** Half of the content, and the connection breaks off. */
  | { readonly kind: 'cut' }
  /** Half of the content, sent as if it were all. */
  | { readonly kind: 'short' }
  /** Half of the content, and nothing more. */
  | { readonly kind: 'stall' }
  /** The question is taken, and nothing is answered. */
  | { readonly kind: 'silence' }
  /** A byte now and then, and no end. */
  | { readonly kind: 'drip' }
  /** A checksum file of another content. */
  | { readonly kind: 'wrong-checksum' }
)

export interface ReleasePage {
  /** Such as http://127.0.0.1:4711. */
  readonly url: string
  /** The templates for `download-url`. */
  readonly templates: { readonly kind: string; readonly kubectl: string; readonly buildx: string }
  /** The paths asked for, in order. */
  readonly requests: readonly string[]
  /** How often a path was asked for. */
  count(path: string): number
  /** Makes a path go wrong, or well again. */
  fault(path: string, fault: Fault | undefined): void
  close(): Promise<void>
}

/** The path of a kind release. */
export function kindPath(version: string, platform = 'linux-amd64'): string {
  return `/${version}/kind-${platform}`
}

/** The path of a kubectl release. */
export function kubectlPath(version: string, platform = 'linux/amd64'): string {
  return `/release/${version}/bin/${platform}/kubectl`
}

/** The path of a buildx release. */
export function buildxPath(version: string, platform = 'linux-amd64'): string {
  return `/buildx/${version}/buildx-${version}.${platform}`
}

/**
 * Starts a page.
 *
 * @param given.files what there is, by path (`kindPath`, `kubectlPath`, `buildxPath`); each has its checksum file beside it
 * @param given.address where to listen; loopback by default
 * @param given.name the host in the URLs, where clients reach the address by another one
 * @param given.latest the release that /latest names, by a redirect as GitHub's; without it there is no such path
 */
export async function startReleasePage(given: {
  readonly files: Readonly<Record<string, Served>>
  readonly address?: string
  readonly name?: string
  readonly latest?: string
}): Promise<ReleasePage> {
  const requests: string[] = []
  const faults = new Map<string, { fault: Fault; left: number }>()

  /** The fault that this request meets, if any. */
  function met(path: string): Fault | undefined {
    const set = faults.get(path)
    if (set === undefined || set.left === 0) return undefined
    set.left--
    return set.fault
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = new URL(request.url ?? '/', 'http://page').pathname
    requests.push(path)
    const fault = met(path)
    if (fault?.kind === 'silence') return
    if (fault?.kind === 'drip') {
      response.writeHead(200)
      const drip = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(drip))
      return
    }
    if (fault?.kind === 'status') return send(response, fault.status, 'text/plain', `${fault.status}\n`)
    if (fault?.kind === 'html')
      return send(response, 200, 'text/html', '<!DOCTYPE html>\n<html>Please log in.</html>\n')
    if (given.latest !== undefined && path === '/latest') {
      response.writeHead(302, { location: `${url}/releases/tag/${given.latest}` }).end()
      return
    }
    if (given.latest !== undefined && path === `/releases/tag/${given.latest}`) {
      return request.headers.accept?.includes('application/json')
        ? send(response, 200, 'application/json', JSON.stringify({ id: 1, tag_name: given.latest }))
        : send(response, 200, 'text/html', `<html><a href="${path}">${given.latest}</a></html>`)
    }
    const file = given.files[path]
    if (file !== undefined) return await sendFile(response, file, fault)
    const checked = /^(.*)(\.sha256|\.sha256sum)$/.exec(path)
    const program = given.files[checked?.[1] ?? '']
    if (checked && program !== undefined) {
      const digest = fault?.kind === 'wrong-checksum' ? 'f'.repeat(64) : await sha256Of(program)
      const line = checked[2] === '.sha256' ? digest : `${digest}  ${basename(checked[1] ?? '')}\n`
      return send(response, 200, 'text/plain', line)
    }
    const beside = Object.entries(given.files).filter(([other]) => path === `${dirname(other)}/checksums.txt`)
    if (beside.length > 0) {
      const lines = beside.map(async ([other, served]) => `${await sha256Of(served)} *${basename(other)}\n`)
      // The real one has more than one line.
      return send(response, 200, 'text/plain', `${'0'.repeat(64)} *other\n${(await Promise.all(lines)).join('')}`)
    }
    send(response, 404, 'text/plain', 'Not Found\n')
  }

  const server = createServer((request, response) => {
    answer(request, response).catch(error => response.destroy(error as Error))
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, given.address ?? '127.0.0.1', resolve)
  })
  const { address, family, port } = server.address() as AddressInfo
  const url = `http://${given.name ?? (family === 'IPv6' ? `[${address}]` : address)}:${port}`
  return {
    url,
    templates: {
      kind: `${url}/{version}/kind-{os}-{arch}`,
      kubectl: `${url}/release/{version}/bin/{os}/{arch}/kubectl`,
      buildx: `${url}/buildx/{version}/buildx-{version}.{os}-{arch}`,
    },
    requests,
    count: path => requests.filter(asked => asked === path).length,
    fault: (path, fault) => {
      if (fault === undefined) faults.delete(path)
      else faults.set(path, { fault, left: fault.times ?? Number.POSITIVE_INFINITY })
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) }).end(body)
}

async function sendFile(response: ServerResponse, served: Served, fault: Fault | undefined): Promise<void> {
  if (fault === undefined && isFile(served)) {
    response.writeHead(200, { 'content-length': (await stat(served.file)).size })
    createReadStream(served.file)
      .on('error', error => response.destroy(error))
      .pipe(response)
    return
  }
  const whole = await bytesOf(served)
  const half = whole.subarray(0, Math.floor(whole.length / 2))
  switch (fault?.kind) {
    case 'cut':
      response.writeHead(200, { 'content-length': whole.length })
      response.write(half, () => response.destroy())
      return
    case 'stall':
      response.writeHead(200, { 'content-length': whole.length })
      response.write(half)
      return
    case 'short':
      response.writeHead(200, { 'content-length': half.length }).end(half)
      return
    default:
      response.writeHead(200, { 'content-length': whole.length }).end(whole)
  }
}

function isFile(served: Served): served is { readonly file: string } {
  return typeof served === 'object' && 'file' in served
}

async function bytesOf(served: Served): Promise<Buffer> {
  if (typeof served === 'string') return Buffer.from(served)
  return isFile(served) ? await readFile(served.file) : served
}

async function sha256Of(served: Served): Promise<string> {
  return createHash('sha256')
    .update(await bytesOf(served))
    .digest('hex')
}
