import { createHash } from 'node:crypto'
import { lookup } from 'node:dns/promises'
import { existsSync, readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import type { Environment } from '../host/host.ts'
import { Problem } from '../lib/problem.ts'
import { within } from '../lib/within.ts'
import type { Endpoint } from './ask.ts'

/** What finding looks at of the world. */
export interface Surroundings {
  readonly env: Environment
  /** The addresses of a name, IPv4 first; empty where nothing resolves it. */
  readonly resolve: (name: string) => Promise<readonly string[]>
  /** A file's text; undefined where there is none. */
  readonly readFile: (path: string) => string | undefined
  readonly exists: (path: string) => boolean
}

/** How long a resolver may take, in milliseconds; then a name counts as one that nothing resolves. */
const LOOKUP_LIMIT = 10_000

/** The surroundings of this process. */
export function surroundings(env: Environment): Surroundings {
  return {
    env,
    exists: existsSync,
    readFile: path => (existsSync(path) ? readFileSync(path, 'utf8') : undefined),
    resolve: async name => {
      const asked = lookup(name, { all: true, verbatim: true })
      const found = await within(LOOKUP_LIMIT, asked, () => new Error('late')).catch(() => [])
      return found.sort((a, b) => a.family - b.family).map(({ address }) => address)
    },
  }
}

const SOCKET = '/var/run/docker.sock'
/** Where docker:dind and its users put the client's certificates by convention. */
const SHARED_CERTIFICATES = '/certs/client'

/**
 * Finds the engines that may be meant, in the order in which they count. All of one search are asked until one answers:
 * more than one comes only from the name `docker`, which may answer with TLS or plain.
 *
 * @param dockerHost the option docker-host
 */
export async function findEndpoints(
  dockerHost: string | undefined,
  around: Surroundings,
): Promise<readonly Endpoint[]> {
  const { env } = around
  if (dockerHost !== undefined) return [named(dockerHost, 'docker-host', around, dockerHost !== env['DOCKER_HOST'])]
  if (env['DOCKER_HOST']) return [named(env['DOCKER_HOST'], 'DOCKER_HOST', around, false)]
  const context = contextEndpoint(around)
  if (context) return [context]
  const sidecar = await sidecarEndpoints(around)
  return sidecar.length > 0 ? sidecar : [localSocket]
}

/**
 * Every engine that may be in reach, by each way of finding one but docker-host: for a look at what else is there. A way that leads
 * nowhere is left out.
 */
export async function endpointsInReach(around: Surroundings): Promise<readonly Endpoint[]> {
  const address = around.env['DOCKER_HOST']
  const ways: readonly (() => readonly (Endpoint | undefined)[])[] = [
    () => [address ? named(address, 'DOCKER_HOST', around, false) : undefined],
    () => [contextEndpoint(around)],
  ]
  const found = ways.flatMap(way => {
    try {
      return way().flatMap(endpoint => endpoint ?? [])
    } catch {
      return []
    }
  })
  const all = [...found, ...(await sidecarEndpoints(around)), localSocket]
  return all.filter((endpoint, index) => all.findIndex(other => other.address === endpoint.address) === index)
}

/** What docker:dind beside the step answers at, with TLS or plain; nothing where the name `docker` is nobody of ours. */
async function sidecarEndpoints({ env, resolve }: Surroundings): Promise<readonly Endpoint[]> {
  const addresses = await resolve('docker')
  if (addresses.length === 0 || !addresses.every(isPrivate)) return []
  const certificates = env['DOCKER_CERT_PATH'] || SHARED_CERTIFICATES
  const found = { source: 'the name docker', exported: true }
  const tls = { DOCKER_HOST: 'tcp://docker:2376', DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates }
  return [
    { address: tls.DOCKER_HOST, env: tls, ...found },
    { address: 'tcp://docker:2375', env: { DOCKER_HOST: 'tcp://docker:2375' }, ...found },
  ]
}

const localSocket: Endpoint = {
  address: `unix://${SOCKET}`,
  env: { DOCKER_HOST: `unix://${SOCKET}` },
  source: 'the default socket',
  exported: false,
}

/** An address that somebody gave: TLS as the docker CLI decides it, by DOCKER_TLS_VERIFY or DOCKER_TLS. */
function named(address: string, source: string, { env, exists }: Surroundings, exported: boolean): Endpoint {
  if (!/^(tcp|unix):\/\//.test(address)) {
    throw new Problem(
      `${source}: ${address} is no engine that can be used here; it takes tcp://name:port or unix:///path`,
    )
  }
  const wantsTls = address.startsWith('tcp://') && Boolean(env['DOCKER_TLS_VERIFY'] || env['DOCKER_TLS'])
  if (!wantsTls) return { address, env: { DOCKER_HOST: address }, source, exported }
  const certificates =
    env['DOCKER_CERT_PATH'] || (exists(SHARED_CERTIFICATES) ? SHARED_CERTIFICATES : `${env['HOME'] ?? ''}/.docker`)
  return {
    address,
    env: { DOCKER_HOST: address, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates },
    source,
    exported: exported || certificates !== env['DOCKER_CERT_PATH'],
  }
}

/** The docker context, read as the CLI keeps it: https://github.com/docker/cli/tree/master/cli/context/store. */
function contextEndpoint({ env, readFile }: Surroundings): Endpoint | undefined {
  const folder = env['DOCKER_CONFIG'] || `${env['HOME'] ?? ''}/.docker`
  const name = env['DOCKER_CONTEXT'] || field(readFile(`${folder}/config.json`), 'currentContext')
  if (typeof name !== 'string' || name === '' || name === 'default') return undefined
  const id = createHash('sha256').update(name).digest('hex')
  const endpoints = field(readFile(`${folder}/contexts/meta/${id}/meta.json`), 'Endpoints') as
    | { docker?: { Host?: string } }
    | undefined
  const address = endpoints?.docker?.Host
  if (!address) throw new Problem(`DOCKER_CONTEXT: there is no docker context ${name} in ${folder}`)
  if (!/^(tcp|unix):\/\//.test(address)) {
    throw new Problem(
      `DOCKER_CONTEXT: the docker context ${name} is at ${address}; set docker-host to a tcp or unix address`,
    )
  }
  const certificates = `${folder}/contexts/tls/${id}/docker`
  const tls = readFile(`${certificates}/ca.pem`) !== undefined
  return {
    address,
    env: { DOCKER_HOST: address, ...(tls ? { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates } : {}) },
    source: `the docker context ${name}`,
    exported: false,
  }
}

function field(json: string | undefined, key: string): unknown {
  if (json === undefined) return undefined
  try {
    return (JSON.parse(json) as Record<string, unknown>)[key]
  } catch {
    return undefined
  }
}

/** True for addresses that only this machine or its own networks route: nobody on the Internet can be `docker`. */
export function isPrivate(address: string): boolean {
  if (isIP(address) === 4) {
    return /^(127\.|10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.|100\.(6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.)/.test(
      address,
    )
  }
  return /^(::1$|f[cd]|fe80:)/i.test(address)
}

/** True for addresses of this machine alone. */
export function isLoopback(address: string): boolean {
  return isIP(address) === 4 ? address.startsWith('127.') : address === '::1'
}
