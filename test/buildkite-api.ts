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
  /** The artifacts whose upload the agent said is finished, by job and path: `JOB/PATH`. */
  readonly artifacts: ReadonlyMap<string, string>
  /** Every request in the order in which it came. */
  readonly requests: readonly ApiRequest[]
  close(): Promise<void>
}

/** An answer: a status, and a body that is sent as JSON. */
type Answer = readonly [status: number, body?: unknown]

/**
 * Buildkite's Agent API on loopback, as far as a job's own commands use it: meta-data, annotations and artifacts. The
 * paths and bodies are those of the agent's api package (meta_data.go, annotations.go, artifacts.go); what is in an artifact
 * comes as a form, to where the answer to its announcement says. What is not played answers 404 and is
 * in `requests` all the same. A request without a token gets 401, as from Buildkite.
 *
 * @param port 0 lets the system pick one
 * @param address where to listen; a test whose agent runs in a container needs more than loopback
 */
export async function startBuildkiteApi(port = 0, address = '127.0.0.1'): Promise<BuildkiteApi> {
  const annotations = new Map<string, Annotation>()
  const metadata = new Map<string, string>()
  const artifacts = new Map<string, string>()
  const announced = new Map<string, { readonly name: string; content?: string }>()
  const requests: ApiRequest[] = []

  const server = createServer(async (request, response) => {
    const text = await readText(request)
    const job = /^\/uploads\/([^/]+)$/.exec(decodeURIComponent(request.url ?? ''))?.[1]
    if (job !== undefined) {
      // Comes without a token, as a form is sent to S3.
      const { key, file } = readForm(text)
      const one = [...announced.values()].find(({ name }) => name === `${job}/${key}`)
      if (one !== undefined && file !== undefined) one.content = file
      response.writeHead(one === undefined ? 404 : 204).end()
      return
    }
    const body = parseJson(text)
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
    const [, job] = /^\/v3\/jobs\/([^/]+)\/artifacts$/.exec(path) ?? []
    if (job !== undefined) return routeArtifacts(method, job, fields['artifacts'])
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

  /** Artifacts are announced, uploaded one by one, and reported as finished. */
  function routeArtifacts(method: string | undefined, job: string, listed: unknown): Answer {
    const batch = Array.isArray(listed) ? listed.filter(isRecord) : []
    if (method === 'POST') {
      const ids = batch.map(({ path }) => {
        const id = `artifact-${announced.size + 1}`
        announced.set(id, { name: `${job}/${path}` })
        return id
      })
      const { port: own } = server.address() as AddressInfo
      const action = {
        url: `http://${address}:${own}/`,
        method: 'POST',
        path: `/uploads/${job}`,
        file_input: 'file',
      }
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the agent puts the artifact's path in
      const data = { key: '${artifact:path}' }
      return [201, { id: 'batch', artifact_ids: ids, upload_instructions: { data, action } }]
    }
    for (const { id, state } of batch) {
      const one = announced.get(String(id))
      if (state === 'finished' && one?.content !== undefined) artifacts.set(one.name, one.content)
    }
    return [200]
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, address, resolve)
  })
  return {
    endpoint: `http://${address}:${(server.address() as AddressInfo).port}/v3`,
    annotations,
    metadata,
    artifacts,
    requests,
    close: () =>
      new Promise((resolve, reject) => {
        server.close(error => (error ? reject(error) : resolve()))
        server.closeAllConnections()
      }),
  }
}

async function readText(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

/** The fields of a form (multipart/form-data), by name; a text is all that the agent's tests here put into one. */
function readForm(text: string): Record<string, string> {
  const boundary = text.slice(0, text.indexOf('\r\n'))
  const parts = text.split(boundary).flatMap(part => {
    const [head = '', ...content] = part.split('\r\n\r\n')
    const name = /\bname="([^"]*)"/.exec(head)?.[1]
    return name === undefined ? [] : [[name, content.join('\r\n\r\n').replace(/\r\n$/, '')] as const]
  })
  return Object.fromEntries(parts)
}

function parseJson(text: string): unknown {
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
