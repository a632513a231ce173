import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import http from 'node:http'
import https from 'node:https'
import net, { type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The part of Docker's API that says who the engine is, on loopback, plain or with TLS as docker:dind sets it up. */
export interface FakeEngine {
  readonly port: number
  close(): Promise<void>
}

/** A loopback address of this process's own, so that Docker's own ports are free there. */
export const ADDRESS = `127.${(process.pid >> 8) & 127}.${process.pid & 255}.77`

const INFO = {
  ServerVersion: '28.5.2',
  Architecture: 'x86_64',
  NCPU: 2,
  MemTotal: 8 * 1024 ** 3,
  CgroupVersion: '2',
  Driver: 'overlay2',
  RegistryConfig: { Mirrors: ['https://mirror.example/'] },
}

/** The first byte of a TLS connection. */
const TLS_HANDSHAKE = 0x16
/** What Go's server, and so dockerd, answers to plain HTTP on its TLS port. */
const GO_SAYS = 'HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n'

/** @param certificates the folder with server/ in it, as `makeCertificates` makes it; plain without */
export async function startEngine(certificates?: string, port = 0): Promise<FakeEngine> {
  const answer: http.RequestListener = (_, response) => response.end(JSON.stringify(INFO))
  const read = (name: string): Buffer => readFileSync(join(certificates ?? '', 'server', name))
  const api =
    certificates === undefined
      ? http.createServer(answer)
      : https.createServer(
          {
            ca: read('ca.pem'),
            cert: read('cert.pem'),
            key: read('key.pem'),
            requestCert: true,
            rejectUnauthorized: true,
          },
          answer,
        )
  const server = net.createServer(socket => {
    socket.on('error', () => {})
    if (certificates === undefined) return api.emit('connection', socket)
    return socket.once('data', first => {
      socket.pause()
      if (first[0] !== TLS_HANDSHAKE) return socket.end(GO_SAYS)
      socket.unshift(first)
      return api.emit('connection', socket)
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, ADDRESS, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise(resolve => {
        api.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}

/**
 * Makes an authority, a server's and a client's certificate: folders server/ and client/, each with ca, cert and key.
 *
 * @param valid from when until when the server's is valid; from now on where it is absent
 */
export function makeCertificates(valid?: readonly [from: Date, to: Date]): {
  readonly folder: string
  readonly remove: () => void
} {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'))
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl('req', '-x509', ...key, '-keyout', 'ca-key.pem', '-out', 'ca.pem', '-subj', '/CN=authority', '-days', '2')
  for (const [side, usage] of [
    ['server', 'serverAuth'],
    ['client', 'clientAuth'],
  ] as const) {
    mkdirSync(join(folder, side))
    openssl(
      ...['req', '-x509', ...key, '-keyout', `${side}/key.pem`, '-out', `${side}/cert.pem`, '-subj', `/CN=${side}`],
      ...['-days', '2', '-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-addext', `extendedKeyUsage=${usage}`],
      ...['-addext', `subjectAltName=DNS:localhost,IP:${ADDRESS}`, '-addext', 'basicConstraints=CA:FALSE'],
    )
    execFileSync('cp', ['ca.pem', `${side}/ca.pem`], { cwd: folder })
  }
  // `openssl req` of older releases knows no other day to begin with than today.
  if (valid !== undefined) {
    const config = [
      ...[
        '[ca]',
        'default_ca = own',
        '[own]',
        'database = index',
        'serial = serial',
        'policy = any',
        '[any]',
        'commonName = supplied',
      ],
      ...['[names]', `subjectAltName = DNS:localhost,IP:${ADDRESS}`, 'extendedKeyUsage = serverAuth'],
    ]
    writeFileSync(join(folder, 'config'), `${config.join('\n')}\n`)
    writeFileSync(join(folder, 'index'), '')
    writeFileSync(join(folder, 'serial'), '01\n')
    const [from, to] = valid.map(time => `${time.toISOString().replace(/[-:T]|\.\d+/g, '')}`)
    openssl('req', '-new', '-key', 'server/key.pem', '-out', 'request', '-subj', '/CN=server')
    openssl(
      ...['ca', '-batch', '-notext', '-md', 'sha256', '-config', 'config', '-extensions', 'names'],
      ...['-cert', 'ca.pem', '-keyfile', 'ca-key.pem', '-in', 'request', '-out', 'server/cert.pem', '-outdir', '.'],
      ...['-startdate', from ?? '', '-enddate', to ?? ''],
    )
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) }
}
