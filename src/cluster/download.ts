/**
 * Downloads: whole and verified, or nothing.
 *
 * @actions/http-client honours https_proxy, http_proxy and no_proxy, upper case too, and NODE_EXTRA_CA_CERTS through Node, and
 * gives an Authorization header to no other host.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { HttpClient } from '@actions/http-client'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { within } from '../lib/within.ts'
import { DownloadFailed, downloadFailed } from './download-failed.ts'
import { type Surroundings, title, type Wanted } from './program.ts'
import { authorized, type Content, checksumIn, checksumUrl, describeContent, downloadUrl, shownUrl } from './release.ts'

/** How long things may take, in milliseconds. */
export interface Patience {
  /** One program, waiting for another job's installation included. */
  readonly limit: number
  /** A server that sends nothing. */
  readonly stall: number
  /** How long to leave the server alone before the second and the third attempt. */
  readonly pauses: readonly number[]
}

/** kubectl has 60 MB: five minutes are 200 kB/s. */
export const PATIENCE: Patience = { limit: 300_000, stall: 20_000, pauses: [2000, 6000] }

/**
 * Downloads a program and verifies it, before it can be run or cached.
 *
 * @returns a new folder with the program, executable, and its sha256 beside it; the program's bytes, and where it is from
 * @throws Problem, and leaves nothing
 */
export async function download(
  wanted: Wanted,
  surroundings: Surroundings,
  deadline: number,
): Promise<{ readonly folder: string; readonly size: number; readonly url: string }> {
  const url = downloadUrl(wanted.template, wanted.version, wanted.platform)
  const folder = await newFolder(wanted.name, surroundings)
  const aside = await newFolder(`${wanted.name}-checksum`, surroundings)
  try {
    const file = join(folder, wanted.name)
    const checksum = wanted.sha256 ?? publishedChecksum(wanted, url, join(aside, 'checksum'), surroundings, deadline)
    // Awaited after the program, whose failure says more: a release that is not there has no checksum either.
    Promise.resolve(checksum).catch(() => {})
    await get({ title: title(wanted), url, file }, surroundings, deadline).catch(thrown => {
      throw programProblem(thrown, wanted, url)
    })
    const expected = await checksum
    const content = await contentOf(file)
    if (content.sha256 !== expected) {
      const promise = wanted.sha256 === undefined ? 'its checksum file promises' : `${wanted.option} pins`
      throw new Problem(
        `download-url: what ${shownUrl(url)} sent is not what ${promise} (sha256 ${expected}) but ${describeContent(content)}; nothing of it was kept; try again, or name a mirror as download-url`,
      )
    }
    await writeFile(`${file}.sha256`, `${expected}\n`, { mode: 0o644 })
    await chmod(folder, 0o755)
    await chmod(file, 0o755)
    return { folder, size: content.size, url }
  } catch (thrown) {
    await rm(folder, { recursive: true, force: true })
    throw thrown
  } finally {
    await rm(aside, { recursive: true, force: true })
  }
}

async function publishedChecksum(
  wanted: Wanted,
  programUrl: string,
  file: string,
  surroundings: Surroundings,
  deadline: number,
): Promise<string> {
  const url = checksumUrl(programUrl, wanted.checksumFile)
  const remedy = `name a mirror as download-url${wanted.name === 'kind' ? `, or pin it as kind-version: ${wanted.version}@sha256:…` : ''}`
  await get({ title: `the checksum of ${title(wanted)}`, url, file }, surroundings, deadline).catch(thrown => {
    if (!(thrown instanceof DownloadFailed)) throw thrown
    throw new Problem(
      `download-url: ${title(wanted)} cannot be verified, since its checksum file ${shownUrl(url)} ${thrown.message}; ${remedy}`,
    )
  })
  const checksum = checksumIn(await readFile(file, 'utf8'), basename(new URL(programUrl).pathname))
  if (checksum === undefined) {
    throw new Problem(
      `download-url: ${title(wanted)} cannot be verified, since ${shownUrl(url)} is no checksum file but ${describeContent(await contentOf(file))}; ${remedy}`,
    )
  }
  return checksum
}

/** How to do without the download. */
const INSTEAD: Readonly<Record<Wanted['name'], string>> = {
  kind: 'use the kind that is on PATH (kind-version: installed)',
  kubectl: 'use the kubectl that is on PATH (kubectl-version: skip)',
  buildx: 'install it in the step (package docker-buildx-plugin)',
}

function programProblem(thrown: unknown, wanted: Wanted, url: string): unknown {
  if (!(thrown instanceof DownloadFailed)) return thrown
  if (thrown.status === 404) {
    return new Problem(
      `${wanted.option}: there is no release ${title(wanted)} for ${wanted.platform.os} ${wanted.platform.arch}: ${shownUrl(url)} ${thrown.message}; take another version, or name a mirror as download-url`,
    )
  }
  return new Problem(
    `download-url: ${title(wanted)} cannot be downloaded: ${shownUrl(url)} ${thrown.message}; try again, name a mirror as download-url, or ${INSTEAD[wanted.name]}`,
  )
}

/** A file to get. */
interface File {
  /** For the log. */
  readonly title: string
  readonly url: string
  /** Where to: a path at which nothing is yet. */
  readonly file: string
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Gets a URL into a file, in as many attempts as there are pauses, and one more.
 *
 * @param deadline milliseconds, as `now` tells them
 * @throws DownloadFailed, and leaves nothing
 */
export async function get(
  wanted: File,
  { log, now, patience = PATIENCE }: Pick<Surroundings, 'log' | 'now' | 'patience'>,
  deadline: number,
): Promise<void> {
  const { url, authorization } = authorized(wanted.url)
  const headers = { ...wanted.headers, ...(authorization === undefined ? {} : { authorization }) }
  const over = new AbortController()
  const attempts = async (): Promise<void> => {
    log.debug(`Downloading ${shownUrl(url)}`)
    for (const pause of [...patience.pauses, undefined]) {
      try {
        return await attempt({ ...wanted, url, headers }, patience.stall, over.signal)
      } catch (thrown) {
        const failure = downloadFailed(thrown)
        if (pause === undefined || over.signal.aborted || !mayPass(failure)) throw failure
        log.info(`${wanted.title}: ${shownUrl(url)} ${failure.message}; trying again in ${formatDuration(pause)}`)
        await sleep(pause, undefined, { signal: over.signal })
      }
    }
  }
  const limit = Math.max(1, deadline - now())
  try {
    await within(limit, attempts(), () => new DownloadFailed(`had not sent it all after ${formatDuration(limit)}`))
  } finally {
    over.abort()
  }
}

/** What may be over at another attempt: trouble on the way, a server that is busy. */
function mayPass({ status }: DownloadFailed): boolean {
  return status === undefined || status >= 500 || status === 408 || status === 429
}

async function attempt(
  { url, file, headers }: Pick<File, 'url' | 'file' | 'headers'>,
  stall: number,
  signal: AbortSignal,
): Promise<void> {
  const silent = new DownloadFailed(`sent nothing for ${formatDuration(stall)}`)
  const client = new HttpClient('kind-in-dind', [], { allowRetries: false, socketTimeout: stall })
  let timer: NodeJS.Timeout | undefined
  try {
    const { message } = await client.get(url, headers).catch((error: Error) => {
      // Its own message has the path with the query, which may be secret.
      throw error.message.startsWith('Request timeout') ? silent : error
    })
    // From here on silence is what this file says of it.
    message.setTimeout(0)
    if (message.statusCode !== 200) {
      message.destroy()
      throw new DownloadFailed(`answered ${message.statusCode}`, message.statusCode)
    }
    let isSilent = false
    timer = setTimeout(() => {
      isSilent = true
      message.destroy()
    }, stall)
    message.on('data', () => timer?.refresh())
    await pipeline(message, createWriteStream(file, { flags: 'wx' }), { signal }).catch(error => {
      throw isSilent ? silent : error
    })
  } catch (thrown) {
    await rm(file, { force: true })
    throw thrown
  } finally {
    clearTimeout(timer)
    client.dispose()
  }
}

/** Reads a file through once. */
export async function contentOf(file: string): Promise<Content> {
  const hash = createHash('sha256')
  let size = 0
  let head = ''
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
    hash.update(chunk)
    size += chunk.length
    if (head === '') head = chunk.toString('latin1', 0, 512)
  }
  return { head, size, sha256: hash.digest('hex') }
}

/** A new folder for what comes, in the job's own. */
export async function newFolder(name: string, { folder }: Pick<Surroundings, 'folder'>): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return await mkdtemp(join(folder, `${name}-`))
}
