/** How mirrors of registries are written. Pure, a leaf. */
import { Problem } from './lib/problem.ts'

/** Where images of a registry are looked for before the registry itself. */
export interface Mirror {
  /** The registry that is mirrored, as references name it: `docker.io`, `registry.example:5000`. */
  readonly upstream: string
  readonly scheme: 'http' | 'https'
  /** With its port, where it is not the scheme's own. */
  readonly host: string
  /** The folder in which the mirror has this registry's images, without slashes around it; empty for none. */
  readonly path: string
  readonly credentials: { readonly user: string; readonly password: string } | undefined
  /** The certificate authority, as PEM; undefined for those that the nodes know. */
  readonly ca: string | undefined
}

/**
 * Reads one mirror: `docker.io=https://user:password@mirror.example/folder ca=file.pem`.
 *
 * @param readFile gives undefined where there is no such file
 * @throws Problem that names the line, without a password
 */
export function readMirror(line: string, readFile: (path: string) => string | undefined): Mirror {
  const refuse = (why: string): Problem => new Problem(`${JSON.stringify(withoutPassword(line))} ${why}`)
  const match = /^([^=\s]+)=(\S+)(?:\s+ca=(\S.*))?$/.exec(line)
  if (!match)
    throw refuse('is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without')
  const [, upstream = '', address = '', ca] = match
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d{1,5})?$/i.test(upstream)) {
    throw refuse(`names ${upstream} as a registry; write it as references do: docker.io, registry.example:5000`)
  }
  if (/^(index|registry-1)\.docker\.io$/i.test(upstream))
    throw refuse('is for Docker Hub, whose images are of docker.io: write that')

  const url = URL.canParse(address) ? new URL(address) : undefined
  const scheme = url?.protocol.replace(':', '')
  if (url === undefined || (scheme !== 'http' && scheme !== 'https')) throw refuse('has no http or https URL')
  if (url.search !== '' || url.hash !== '')
    throw refuse(
      'has more than a path in its URL; what a password has of ?, #, @ and / is written as %3F, %23, %40 and %2F',
    )
  if ((url.username === '') !== (url.password === '')) throw refuse('has only one of user and password')
  return {
    upstream: upstream.toLowerCase(),
    scheme,
    host: url.host,
    // As containerd's own files have it; it goes there of itself.
    path: url.pathname.replace(/^\/+|\/+$/g, '').replace(/^v2(\/|$)/, ''),
    credentials:
      url.username === ''
        ? undefined
        : { user: decoded(url.username, refuse), password: decoded(url.password, refuse) },
    ca: ca === undefined ? undefined : certificate(ca, scheme, readFile, refuse),
  }
}

/** A line that may be half of one: a comma or a line break in a password has made two of it. */
function withoutPassword(line: string): string {
  const [, before = '', address = ''] = /^((?:[^=\s]+=)?[a-z]+:\/\/)?(.*)$/is.exec(line) ?? []
  if (address.includes('@')) return `${before}***${address.slice(address.lastIndexOf('@'))}`
  // What is no host and port may be a user and a password that break off.
  return /^[^/]*:(?!\d+(\/|\s|$))/.test(address) ? `${before}***` : line
}

type Refuse = (why: string) => Problem

function decoded(part: string, refuse: Refuse): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw refuse('has a % in its user or password that begins no such code; write it as %25')
  }
}

function certificate(
  path: string,
  scheme: string,
  readFile: (path: string) => string | undefined,
  refuse: Refuse,
): string {
  if (scheme === 'http') throw refuse('has a ca, which plain http has no use for')
  let text: string | undefined
  try {
    text = readFile(path)
  } catch (thrown) {
    if (!(thrown instanceof Problem)) throw thrown
    throw refuse(`names ${path}, which ${thrown.message}`)
  }
  if (text === undefined) throw refuse(`names ${path}, which is no file here`)
  if (!text.includes('-----BEGIN CERTIFICATE-----')) throw refuse(`names ${path}, which has no certificate in it (PEM)`)
  return text
}

/** What a mirror is asked with, where it has credentials: HTTP's Basic scheme. */
export function basicAuth({ user, password }: { readonly user: string; readonly password: string }): string {
  return Buffer.from(`${user}:${password}`).toString('base64')
}
