import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Annotation {
  readonly body: string
  readonly context: string
  readonly style: string
}

export interface ApiRequest {
  readonly method: string
  readonly path: string
  /** What came in the Authorization header after `Token `. */
  readonly token: string | undefined
  readonly body: unknown
}

export interface BuildkiteApi {
  /** What BUILDKITE_AGENT_ENDPOINT is set to. */
  readonly endpoint: string
  /** Annotations as the build page would show them, by context. */
  readonly annotations: ReadonlyMap<string, Annotation>
  readonly metadata: ReadonlyMap<string, string>
  /** Every request in the order in which it came. */
  readonly requests: readonly ApiRequest[]
  close(): Promise<void>
}

/** An answer: a status, and a body that is sent as JSON. */
type Answer = readonly [status: number, body?: unknown]

/**
 * Buildkite's Agent API on loopback, as far as a job's own commands use it: meta-data and annotations. The paths and
 * bodies are those of the agent's api package (meta_data.go, annotations.go). What is not played answers 404 and is
 * in `requests` all the same. A request without a token gets 401, as from Buildkite.
 *
 * @param port 0 lets the system pick one
 * @param address where to listen; a test whose agent runs in a container needs more than loopback
 */
export async function startBuildkiteApi(port = 0, address = '127.0.0.1'): Promise<BuildkiteApi> {
  const annotations = new Map<string, Annotation>()
  const metadata = new Map<string, string>()
  const requests: ApiRequest[] = []

  const server = createServer(async (request, response) => {
    const body = await readJson(request)
    const token = /^Token (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://localhost').pathname)
    requests.push({ method: request.method ?? '', path, token, body })
    const [status, answer] = token === undefined ? [401, { message: 'no token' }] : route(request.method, path, body)
    response.writeHead(status, { 'Content-Type': 'application/json' })
    response.end(answer === undefined ? '' : JSON.stringify(answer))
  })

  function route(method: string | undefined, path: string, body: unknown): Answer {
    const fields = isRecord(body) ? body : {}
    const text = (name: string, otherwise = ''): string => (typeof fields[name] === 'string' ? fields[name] : otherwise)
    const [, what, rest] = /^\/v3\/(?:jobs|builds)\/[^/]+\/(data|annotations)(?:\/(.+))?$/.exec(path) ?? []
    switch (`${method} ${what}${what === 'data' ? `/${rest}` : ''}`) {
      case 'POST data/set':
        metadata.set(text('key'), text('value'))
        return [200]
      case 'POST data/get': {
        const value = metadata.get(text('key'))
        return value === undefined ? [404, { message: 'No key found' }] : [200, { key: text('key'), value }]
      }
      case 'POST data/exists':
        return [200, { exists: metadata.has(text('key')) }]
      case 'POST data/keys':
        return [200, [...metadata.keys()]]
      case 'POST annotations': {
        const context = text('context', 'default')
        const before = fields['append'] === true ? (annotations.get(context)?.body ?? '') : ''
        annotations.set(context, { body: before + text('body'), context, style: text('style') })
        return [201]
      }
      case 'DELETE annotations':
        return annotations.delete(rest ?? '') ? [200] : [404, { message: 'No annotation found' }]
      default:
        return [404, { message: `${method} ${path} is not played` }]
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, address, resolve)
  })
  return {
    endpoint: `http://${address}:${(server.address() as AddressInfo).port}/v3`,
    annotations,
    metadata,
    requests,
    close: () =>
      new Promise((resolve, reject) => {
        server.close(error => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      }),
  }
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
