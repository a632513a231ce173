/** A registry as engines meet them: it speaks for a real one, and refuses what its name says. */
import http from 'node:http'
import type { AddressInfo } from 'node:net'

export interface RegistryStub {
  readonly port: number
  /** How often a manifest was asked for in a folder: one for each try of a pull. */
  tries(folder: string): number
  close(): Promise<void>
}

/** What a folder answers to those that ask for a manifest, by how often they did; undefined hands the question on. */
const FOLDERS: Readonly<Record<string, (asked: number) => { status: number; code: string } | undefined>> = {
  good: () => undefined,
  twice: asked => (asked > 2 ? undefined : { status: 429, code: 'TOOMANYREQUESTS' }),
  limited: () => ({ status: 429, code: 'TOOMANYREQUESTS' }),
  busy: asked => (asked > 1 ? undefined : { status: 503, code: 'UNAVAILABLE' }),
  denied: () => ({ status: 403, code: 'DENIED' }),
}

/**
 * Starts it. `FOLDER/NAME` is the real registry's NAME, answered as the folder is called; without a folder it may be pushed to.
 *
 * @param given.upstream the real registry's URL
 * @param given.credentials what it wants of everybody, as `user:password`
 */
export async function startRegistryStub(given: {
  readonly address: string
  readonly upstream: string
  readonly credentials?: string
}): Promise<RegistryStub> {
  const asked = new Map<string, number>()
  const login = given.credentials && `Basic ${Buffer.from(given.credentials).toString('base64')}`

  const server = http.createServer((request, response) => {
    const { method = '', url = '', headers } = request
    const refuse = ({ status, code }: { status: number; code: string }): void => {
      response.writeHead(status, { 'content-type': 'application/json', 'www-authenticate': 'Basic realm="stub"' })
      response.end(JSON.stringify({ errors: [{ code, message: 'see http://me:token@registry/help?signature=token' }] }))
    }
    if (login !== undefined && headers.authorization !== login) return refuse({ status: 401, code: 'UNAUTHORIZED' })
    const folder = /^\/v2\/(\w+)\/\w+\//.exec(url)?.[1]
    const answer = folder === undefined ? undefined : FOLDERS[folder]
    if (folder !== undefined && answer !== undefined && url.includes('/manifests/')) {
      // Each try begins with one HEAD; what follows a refused one belongs to it.
      if (method === 'HEAD') asked.set(folder, (asked.get(folder) ?? 0) + 1)
      const refusal = answer(asked.get(folder) ?? 0)
      if (refusal !== undefined) return refuse(refusal)
    }
    const path = answer === undefined ? url : url.replace(`/${folder}/`, '/')
    const { authorization: _, ...rest } = headers
    const onward = http.request(new URL(path, given.upstream), { method, headers: rest }, real => {
      response.writeHead(real.statusCode ?? 502, real.headers)
      real.pipe(response)
    })
    onward.on('error', () => response.destroy())
    return void request.pipe(onward)
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, given.address, resolve)
  })
  return {
    port: (server.address() as AddressInfo).port,
    tries: folder => asked.get(folder) ?? 0,
    close: () =>
      new Promise(resolve => {
        server.closeAllConnections()
        server.close(() => resolve())
      }),
  }
}
