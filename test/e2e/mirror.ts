/** Mirrors as companies run them: behind a password, one plain and one with a certificate of a CA of their own. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { docker, names, until } from './lab.ts'
import type { Sidecar } from './place.ts'

/** The image that the mirrors have: its path and tag in them. */
export const MIRRORED = 'team/app:ci'

export interface Mirrors {
  /** URLs with user and password, as nodes on the sidecar's engine reach the mirrors. */
  readonly plain: string
  readonly tls: string
  /** The plain one, as the engine itself reaches it and lets it be plain. */
  readonly loopback: string
  /** The CA of the one with TLS, as PEM. */
  readonly ca: string
  readonly password: string
  /** Of the image. */
  readonly digest: string
  /** User and password as HTTP's Basic scheme sends them. */
  readonly basic: string
  remove(): Promise<void>
}

const PASSWORD = 'p@ss-of-the-mirror'
const BASIC = Buffer.from(`ci:${PASSWORD}`).toString('base64')
const PORTS = { registry: 5555, plain: 5601, tls: 5602 }

/** Lets nobody in without the password; all others get to the registry behind it. In the step image's Node. */
const SERVER = `
  const [http, https] = [require('node:http'), require('node:https')]
  const answer = (request, response) => {
    if (request.headers.authorization !== 'Basic ${BASIC}') {
      response.writeHead(401, { 'www-authenticate': 'Basic realm="mirror"' }).end()
      return
    }
    const { method, url: path, headers } = request
    http.request({ host: '127.0.0.1', port: ${PORTS.registry}, method, path, headers }, got => {
      response.writeHead(got.statusCode, got.headers)
      got.pipe(response)
    }).on('error', () => response.writeHead(502).end()).end()
  }
  http.createServer(answer).listen(${PORTS.plain})
  https.createServer({ key: process.env.KEY, cert: process.env.CERT }, answer).listen(${PORTS.tls})`

/**
 * Starts the mirrors beside a sidecar's engine, on its network.
 *
 * @param registry a registry's image, and
 * @param image one that the mirrors shall have; the engine has both
 */
export async function startMirrors(sidecar: Sidecar, registry: string, image: string): Promise<Mirrors> {
  const local = `127.0.0.1:${PORTS.registry}`
  await sidecar.docker('run', '--detach', '--name', 'upstream', '--publish', `${local}:5000`, registry)
  await sidecar.docker('tag', image, `${local}/${MIRRORED}`)
  await until('a push to the registry behind the mirrors', 30_000, () => sidecar.docker('push', `${local}/${MIRRORED}`))
  const pushed = await sidecar.docker('inspect', '--format={{index .RepoDigests 0}}', `${local}/${MIRRORED}`)
  await sidecar.docker('rmi', `${local}/${MIRRORED}`)

  const template = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}'
  const address = (await docker('inspect', '--format', template, sidecar.name)).trim()
  const { ca, key, cert } = makeCertificate(address)
  const name = `${sidecar.name}-mirror`
  await docker(
    ...['run', '--detach', '--name', name, '--network', `container:${sidecar.name}`],
    ...['--env', `KEY=${key}`, '--env', `CERT=${cert}`],
    ...[names.images.step, 'node', '--eval', SERVER],
  )
  const url = (scheme: string, host: string): string => `${scheme}://ci:${encodeURIComponent(PASSWORD)}@${host}`
  return {
    plain: url('http', `${address}:${PORTS.plain}`),
    tls: url('https', `${address}:${PORTS.tls}`),
    loopback: url('http', `127.0.0.1:${PORTS.plain}`),
    ...{ ca, password: PASSWORD, basic: BASIC, digest: pushed.trim().replace(/^.*@/, '') },
    remove: async () => void (await docker('rm', '--force', name)),
  }
}

/** Makes a CA, and with it a certificate for an address. */
function makeCertificate(address: string): { readonly ca: string; readonly key: string; readonly cert: string } {
  const folder = mkdtempSync(join(tmpdir(), 'mirror-'))
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'pipe' })
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  try {
    openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-subj', '/CN=mirror CA', '-days', '2')
    openssl('req', ...key, '-keyout', 'key.pem', '-out', 'csr.pem', '-subj', '/CN=mirror')
    writeFileSync(join(folder, 'names'), `subjectAltName = IP:${address}\n`)
    openssl(
      ...['x509', '-req', '-in', 'csr.pem', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial'],
      ...['-days', '2', '-extfile', 'names', '-out', 'cert.pem'],
    )
    const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
    return { ca: read('ca.pem'), key: read('key.pem'), cert: read('cert.pem') }
  } finally {
    rmSync(folder, { recursive: true })
  }
}
