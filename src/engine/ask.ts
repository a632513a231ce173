import { readFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { EngineVariable } from '../plan.ts'

/** How to talk to an engine that may be there. */
export interface Endpoint {
  /** `tcp://name:port` or `unix:///path`. */
  readonly address: string
  readonly env: Readonly<Partial<Record<EngineVariable, string>>>
  readonly source: string
  readonly exported: boolean
}

/** Why an engine did not answer. `wait` is worth waiting for: it may be starting. */
export interface Refusal {
  readonly wait: boolean
  /** What was met, to be put behind the address: "refuses connections". */
  readonly met: string
  /** What to do about it, a clause. */
  readonly advice: string
}

export type Answer<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly refusal: Refusal }

const CERTIFICATES = ['ca.pem', 'cert.pem', 'key.pem'] as const

/** Where the certificates of a TLS endpoint are; undefined for a plain one or a socket. */
export function certificatePath(endpoint: Endpoint): string | undefined {
  return endpoint.env.DOCKER_TLS_VERIFY ? endpoint.env.DOCKER_CERT_PATH : undefined
}

export interface HostPort {
  readonly host: string
  readonly port: number
}

/** The host and port of a tcp address; the port defaults as the docker CLI's does. */
export function hostPort(address: string, tls: boolean): HostPort | undefined {
  const match = /^tcp:\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/?$/.exec(address)
  if (!match?.[1]) return undefined
  return { host: match[1].replace(/^\[|\]$/g, ''), port: Number(match[2] ?? (tls ? 2376 : 2375)) }
}

/**
 * Asks the engine's HTTP API for a JSON document, over the very address, certificates and verification that the docker
 * CLI will use. Not by the CLI: it folds every way of not answering into "Cannot connect to the Docker daemon".
 *
 * @param timeout milliseconds
 */
export async function ask<T>(endpoint: Endpoint, path: string, timeout = 5000): Promise<Answer<T>> {
  const certificates = certificatePath(endpoint)
  let tls: https.RequestOptions = {}
  if (certificates !== undefined) {
    const missing: string[] = []
    const [ca, cert, key] = CERTIFICATES.map(name => {
      try {
        return readFileSync(`${certificates}/${name}`)
      } catch (error) {
        missing.push((error as NodeJS.ErrnoException).code === 'EACCES' ? `${name} (not readable)` : name)
        return undefined
      }
    })
    if (missing.length > 0) {
      // Certificates are no help where nobody asks for any.
      const plainly = await ask(withoutTls(endpoint), '/version', timeout)
      if (plainly.ok) return { ok: false, refusal: speaksPlain }
      return no(true, `is asked over TLS, but ${certificates} lacks ${missing.join(', ')}`, certificateAdvice)
    }
    tls = { ca, cert, key }
  }
  const target = endpoint.address.startsWith('unix://')
    ? { socketPath: endpoint.address.slice('unix://'.length) }
    : hostPort(endpoint.address, certificates !== undefined)
  if (!target) return no(false, 'is no address of an engine', 'write tcp://name:port or unix:///path')
  try {
    const { status, body } = await get(certificates === undefined ? http : https, {
      ...target,
      ...tls,
      path,
      timeout,
      agent: false,
    })
    if (status === 200) return { ok: true, value: JSON.parse(body) as T }
    if (status === 400 && /HTTP request to an HTTPS server/.test(body)) {
      return no(
        false,
        'speaks TLS but is asked without',
        `set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH to the client certificates' folder`,
      )
    }
    return no(status >= 500, `answers ${status} ${body.trim().slice(0, 200)}`, 'look at its log')
  } catch (error) {
    return { ok: false, refusal: refusalOf(error as NodeJS.ErrnoException, endpoint) }
  }
}

const certificateAdvice =
  "share the engine's client certificates with this step (docker:dind writes them to /certs/client) and let DOCKER_CERT_PATH name their folder"

const speaksPlain: Refusal = {
  wait: false,
  met: 'speaks plain HTTP but is asked over TLS',
  advice: 'unset DOCKER_TLS_VERIFY, or use the TLS port (2376)',
}

/** The endpoint without TLS. */
function withoutTls({ env: { DOCKER_HOST = '' }, ...endpoint }: Endpoint): Endpoint {
  return { ...endpoint, env: { DOCKER_HOST } }
}

function no(wait: boolean, met: string, advice: string): { ok: false; refusal: Refusal } {
  return { ok: false, refusal: { wait, met, advice } }
}

function get(
  client: typeof http | typeof https,
  options: https.RequestOptions,
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const request = client.get(options, response => {
      let body = ''
      response.setEncoding('utf8')
      response.on('data', (chunk: string) => {
        body += chunk
      })
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body }))
      response.on('error', reject)
    })
    // The option `timeout` is for silence alone; an answer that drips must end too.
    let asksForName = typeof options.host === 'string' && isIP(options.host) === 0
    const late = (): void => {
      // A resolver that does not answer has a longer patience than we.
      request.destroy(Object.assign(new Error('no answer in time'), { code: asksForName ? 'EAI_AGAIN' : 'ETIMEDOUT' }))
    }
    const limit = setTimeout(late, options.timeout)
    request.on('socket', socket => {
      if (!socket.connecting) asksForName = false
      socket.once('lookup', () => {
        asksForName = false
      })
    })
    request.on('close', () => clearTimeout(limit))
    request.on('timeout', late)
    request.on('error', reject)
  })
}

/** Tells the ways of not answering apart; the codes are Node's and OpenSSL's. */
function refusalOf(error: NodeJS.ErrnoException, endpoint: Endpoint): Refusal {
  const { code = '', message } = error
  const isSocket = endpoint.address.startsWith('unix://')
  switch (code) {
    case 'ECONNREFUSED':
      return { wait: true, met: 'refuses connections', advice: 'see that the engine runs and listens there' }
    case 'ENOENT':
      return { wait: true, met: 'does not exist', advice: 'start the engine, or name another with docker-host' }
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return {
        wait: true,
        met: 'has a name that nothing resolves',
        advice: 'see that the sidecar has that name on this network',
      }
    case 'EACCES':
    case 'EPERM':
      return isSocket
        ? {
            wait: false,
            met: `is not for this user (uid ${process.getuid?.()})`,
            advice: `run the step as root or in the group that owns the socket`,
          }
        : { wait: false, met: 'may not be reached', advice: 'allow this connection' }
    case 'ETIMEDOUT':
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return { wait: true, met: `does not answer (${code})`, advice: 'see that the network lets this step reach it' }
    case 'ECONNRESET':
    case 'EPIPE':
      return certificatePath(endpoint) === undefined
        ? {
            wait: true,
            met: 'closes the connection',
            advice: 'see whether it is starting, or wants TLS (DOCKER_TLS_VERIFY)',
          }
        : {
            wait: true,
            met: 'closes the connection after our certificate',
            advice: `see whether it is starting; else ${certificateAdvice}`,
          }
    case 'EPROTO':
      if (/wrong version number|packet length too long/i.test(message)) return speaksPlain
      return {
        wait: false,
        met: `does not agree on TLS (${message.trim()})`,
        advice: 'see which TLS versions it takes',
      }
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_PACKET_LENGTH_TOO_LONG':
      return speaksPlain
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return {
        wait: false,
        met: `has a certificate for other names (${message})`,
        advice: 'use one of these names in DOCKER_HOST',
      }
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'CERT_SIGNATURE_FAILURE':
      return { wait: true, met: `has a certificate that ca.pem did not sign (${code})`, advice: certificateAdvice }
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return {
        wait: false,
        met: `has a certificate that is not valid now (${code})`,
        advice: 'renew it, and compare the clocks',
      }
    default:
      if (code.startsWith('HPE_')) {
        return { wait: false, met: `is no engine, it does not speak HTTP (${code})`, advice: 'name another address' }
      }
      if (/alert|ERR_SSL|ERR_OSSL/.test(code + message)) {
        return { wait: true, met: `refuses our client certificate (${code || message})`, advice: certificateAdvice }
      }
      return { wait: true, met: `does not answer (${code || message})`, advice: 'look at its log' }
  }
}
