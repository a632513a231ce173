/**
 * Puts programs where the job finds them: from PATH, from the tool cache, or from a release page.
 *
 * @actions/tool-cache downloads (it honours https_proxy, http_proxy and no_proxy, upper case too, and NODE_EXTRA_CA_CERTS
 * through Node) and keeps the cache's layout. It reads RUNNER_TOOL_CACHE from process.env itself: where a host gives a
 * `cacheFolder`, it has set that variable to the same folder.
 */
import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { access, chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { cacheDir, downloadTool, find } from '@actions/tool-cache'
import { lock } from 'proper-lockfile'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import type { Runner } from '../lib/run.ts'
import { takingStdout } from '../lib/stdout.ts'
import type { DownloadName, KindVersion, KubectlVersion } from '../options.ts'
import { codeOf, DownloadFailed, downloadFailed } from './download-failed.ts'
import { KIND, KIND_CHECKSUMS, NODE_IMAGES } from './kind-releases.ts'
import { kindOnPath, kubectlOnPath } from './on-path.ts'
import {
  authorized,
  type Content,
  checksumIn,
  checksumUrl,
  describeContent,
  downloadUrl,
  latestUrl,
  type Platform,
  platformOf,
  RELEASE_PAGES,
  releaseIn,
  shownUrl,
} from './release.ts'

/** What an installation needs of the world. */
export interface Surroundings {
  readonly runner: Runner
  readonly log: {
    info(message: string): void
    debug(message: string): void
    warning(message: string): void
  }
  /** Milliseconds. */
  readonly now: () => number
  /** The step's `process.platform` and `process.arch`. */
  readonly platform: { readonly os: string; readonly arch: string }
  /** The value of RUNNER_TOOL_CACHE. Where it is undefined or cannot be written, `folder` takes its place. */
  readonly cacheFolder: string | undefined
  /** The job's own folder. */
  readonly folder: string
  /** Milliseconds for one program, waiting for another job's installation included. */
  readonly timeLimit?: number
}

export interface Program {
  /** What to run: a file, or a bare name where it is on PATH already. */
  readonly path: string
  /** Such as v0.33.0. */
  readonly version: string
  /** The folder to put on PATH; undefined where the program is there already. */
  readonly folder: string | undefined
}

/** kubectl has 60 MB: five minutes are 200 kB/s, and leave room for the three attempts that tool-cache makes. */
const TIME_LIMIT = 300_000

/** `latest` has a fallback, so it is not waited for as long. */
const LATEST_LIMIT = 15_000

/** Milliseconds after which the lock of a process that was killed counts for nothing; a living holder renews it. */
const STALE = 20_000
const RENEWED = 4_000

/**
 * Installs kind.
 *
 * @param asked.version what the option says: the pinned release, another one (its sha256 pinned or not), the latest, or what is
 * on PATH
 * @param asked.url the template of `download-url`, instead of the project's own page
 * @throws Problem where there is none, or not the one that it should be
 */
export async function installKind(
  asked: Surroundings & { readonly version: KindVersion; readonly url?: string | undefined },
): Promise<Program> {
  const { version, url, ...surroundings } = asked
  if (version.kind === 'installed') return await installedKind(surroundings)
  const page = { ...RELEASE_PAGES.kind, ...(url === undefined ? {} : { template: url }) }
  const named = version.kind === 'release' ? version.version : KIND
  const release = version.kind === 'latest' ? await latest(page.template, surroundings) : named
  const platform = platformOf(surroundings.platform)
  // A mirror may have a kind of its own build, with the checksum of that beside it.
  const known = url === undefined && release === KIND ? KIND_CHECKSUMS[`${platform.os}-${platform.arch}`] : undefined
  return await obtain(
    {
      name: 'kind',
      option: 'kind-version',
      version: release,
      sha256: version.kind === 'release' && version.sha256 !== undefined ? version.sha256 : known,
      platform,
      ...page,
    },
    surroundings,
  )
}

/**
 * Installs kubectl, unless one is on PATH that will do: any where no version was asked for, else that version.
 *
 * @param asked.version what the option says
 * @param asked.kubernetesVersion the cluster's, such as v1.34.0; where it is not known, that of the pinned kind's own image
 * @param asked.url the template of `download-url`, instead of the project's own page
 * @returns undefined where the option says `skip`
 * @throws Problem where there is none, or not the one that it should be
 */
export async function installKubectl(
  asked: Surroundings & {
    readonly version: KubectlVersion
    readonly kubernetesVersion: string | undefined
    readonly url?: string | undefined
  },
): Promise<Program | undefined> {
  const { version, kubernetesVersion, url, ...surroundings } = asked
  if (version.kind === 'skip') return undefined
  const present = await kubectlOnPath(surroundings.runner, surroundings.log.debug)
  if (present !== undefined && (version.kind === 'cluster' || version.version === present)) {
    surroundings.log.info(`kubectl ${present} is on PATH`)
    return { path: 'kubectl', version: present, folder: undefined }
  }
  const page = { ...RELEASE_PAGES.kubectl, ...(url === undefined ? {} : { template: url }) }
  return await obtain(
    {
      name: 'kubectl',
      option: 'kubectl-version',
      version: version.kind === 'release' ? version.version : (kubernetesVersion ?? `v${NODE_IMAGES[0]?.kubernetes}`),
      sha256: undefined,
      platform: platformOf(surroundings.platform),
      ...page,
    },
    surroundings,
  )
}

async function installedKind({ runner, log }: Surroundings): Promise<Program> {
  const found = await kindOnPath(runner, log.debug)
  if (found === undefined) {
    throw new Problem(
      `kind-version: installed: there is no kind on PATH that runs; put one there, or name a release such as ${KIND}`,
    )
  }
  if (found.version === undefined) {
    throw new Problem(
      `kind-version: installed: the kind on PATH does not tell its version but says ${JSON.stringify(found.output.slice(0, 80))}; put another one there, or name a release such as ${KIND}`,
    )
  }
  log.info(`kind ${found.version} is on PATH`)
  return { path: 'kind', version: found.version, folder: undefined }
}

/** The release that the page calls its latest, or the pinned one, with a warning that says why. */
async function latest(template: string, surroundings: Surroundings): Promise<string> {
  const url = latestUrl(template)
  const folder = await newFolder('latest', surroundings)
  try {
    const file = join(folder, 'answer')
    const headers = { accept: 'application/json, text/plain;q=0.9, */*;q=0.8' }
    await get({ title: 'kind latest', url, file, headers }, surroundings, surroundings.now() + LATEST_LIMIT)
    const release = releaseIn(await readFile(file, 'utf8'))
    if (release !== undefined) return release
    surroundings.log.warning(
      `kind-version: latest: ${shownUrl(url)} names no release but is ${describeContent(await contentOf(file))}; taking ${KIND}, the pinned one`,
    )
  } catch (thrown) {
    if (!(thrown instanceof DownloadFailed)) throw thrown
    surroundings.log.warning(`kind-version: latest: ${shownUrl(url)} ${thrown.message}; taking ${KIND}, the pinned one`)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
  return KIND
}

/** A program of a release page. */
export interface Wanted {
  readonly name: Exclude<DownloadName, 'node'>
  /** The option that chose the version. */
  readonly option: string
  readonly version: string
  readonly platform: Platform
  readonly template: string
  readonly checksumFile: string
  /** Pinned by the user; else the page's checksum file has it. */
  readonly sha256: string | undefined
}

/** From the cache, or from the page into the cache. Of several processes one downloads, and the others wait for it. */
export async function obtain(wanted: Wanted, surroundings: Surroundings): Promise<Program> {
  const { log, now, timeLimit = TIME_LIMIT } = surroundings
  const deadline = now() + timeLimit
  const ownFolder = join(surroundings.folder, 'tools', wanted.name, wanted.version)
  const ready = (folder: string): Program => ({ path: join(folder, wanted.name), version: wanted.version, folder })

  const before = cached(wanted, surroundings)
  if (before !== undefined && (await stateIn(before, wanted)) === 'good') return ready(before)
  const unlock = await lockCache(wanted, surroundings, deadline)
  try {
    // Another process may have cached it while this one waited.
    const folder = unlock === undefined ? ownFolder : cached(wanted, surroundings)
    const state = await stateIn(folder, wanted)
    if (state === 'good' && folder !== undefined) return ready(folder)
    if (state === 'damaged') {
      log.info(`the cached ${title(wanted)} is not the file that was cached; downloading it again`)
    }
    const started = now()
    const { folder: downloaded, size, url } = await download(wanted, surroundings, deadline)
    log.info(
      `${title(wanted)} from ${shownUrl(url)}: ${(size / 1e6).toFixed(1)} MB in ${formatDuration(now() - started)}, checksum verified`,
    )
    try {
      const kept = unlock === undefined ? undefined : await cache(downloaded, wanted, surroundings)
      if (kept !== undefined) return ready(kept)
      await rm(ownFolder, { recursive: true, force: true })
      await mkdir(dirname(ownFolder), { recursive: true })
      await rename(downloaded, ownFolder)
      return ready(ownFolder)
    } finally {
      await rm(downloaded, { recursive: true, force: true })
    }
  } finally {
    await unlock?.()
  }
}

function title(wanted: Wanted): string {
  return `${wanted.name} ${wanted.version}`
}

/** Our own name in the tool cache: another action's `kind` there was not verified by us, and is not ours to replace. */
function cacheName(wanted: Wanted): string {
  return `kind-in-dind-${wanted.name}`
}

/** The program's folder in the tool cache, undefined where there is none. */
function cached(wanted: Wanted, { cacheFolder, log }: Surroundings): string | undefined {
  if (cacheFolder === undefined) return undefined
  const folder = takingStdout(
    text => log.debug(plain(text)),
    () => find(cacheName(wanted), wanted.version, wanted.platform.arch),
  )
  return folder === '' ? undefined : folder
}

/**
 * Compares a program with the sha256 that was written beside it when it was verified: a disk that was full, a job that was
 * killed or a careless clean-up leave files that are there and do not run.
 */
async function stateIn(folder: string | undefined, wanted: Wanted): Promise<'good' | 'absent' | 'damaged' | 'another'> {
  if (folder === undefined) return 'absent'
  const file = join(folder, wanted.name)
  try {
    const verified = (await readFile(`${file}.sha256`, 'utf8')).trim()
    if (verified !== (await contentOf(file)).sha256) return 'damaged'
    return wanted.sha256 === undefined || wanted.sha256 === verified ? 'good' : 'another'
  } catch {
    return (await isThere(folder)) ? 'damaged' : 'absent'
  }
}

/** @returns the folder in the tool cache; undefined where it could not be kept there */
async function cache(downloaded: string, wanted: Wanted, { log }: Surroundings): Promise<string | undefined> {
  try {
    // The folder as a whole, so that tool-cache's .complete comes after the checksum.
    const folder = await takingStdout(
      text => log.debug(plain(text)),
      () => cacheDir(downloaded, cacheName(wanted), wanted.version, wanted.platform.arch),
    )
    return (await stateIn(folder, wanted)) === 'good' ? folder : undefined
  } catch (thrown) {
    log.info(`${title(wanted)} cannot be kept in the tool cache (${messageOf(thrown)}); this job has its own`)
    return undefined
  }
}

/**
 * Locks one program of the tool cache among all processes that use the cache: tool-cache itself removes a folder and fills
 * it anew without minding who else does.
 *
 * @returns what unlocks it; undefined where the cache cannot be written
 * @throws Problem where another process holds the lock until the deadline
 */
async function lockCache(
  wanted: Wanted,
  { cacheFolder, log, now }: Surroundings,
  deadline: number,
): Promise<(() => Promise<void>) | undefined> {
  if (cacheFolder === undefined) return undefined
  const folder = join(cacheFolder, cacheName(wanted))
  const file = join(folder, `.${wanted.version}-${wanted.platform.arch}`)
  const options = {
    realpath: false,
    stale: STALE,
    update: RENEWED,
    // Whoever took it may replace what we cache; stateIn() sees that.
    onCompromised: (error: Error) => log.debug(`${file}.lock: ${error.message}`),
  }
  const take = async (retries: object | number): Promise<() => Promise<void>> => {
    const release = await lock(file, { ...options, retries })
    return () => release().catch(error => log.debug(messageOf(error)))
  }
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
    return await take(0)
  } catch (thrown) {
    if (codeOf(thrown) !== 'ELOCKED') {
      log.info(`the tool cache cannot be written (${messageOf(thrown)}); this job has its own ${title(wanted)}`)
      return undefined
    }
  }
  log.info(`waiting for another job that installs ${title(wanted)}`)
  const left = Math.max(1, deadline - now())
  try {
    return await take({ forever: true, factor: 1.3, minTimeout: 50, maxTimeout: 500, maxRetryTime: left })
  } catch (thrown) {
    if (codeOf(thrown) !== 'ELOCKED') throw thrown
    throw new Problem(
      `${wanted.option}: another job has been installing ${title(wanted)} for ${formatDuration(left)}; if there is none, remove ${file}.lock`,
    )
  }
}

/**
 * Downloads a program and verifies it, before it can be run or cached.
 *
 * @returns a new folder with the program, executable, and its sha256 beside it; the program's bytes, and where it is from
 * @throws Problem, and leaves nothing
 */
async function download(
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
    await writeFile(`${file}.sha256`, `${expected}\n`)
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

/**
 * Gets a URL into a file that is not there yet; tool-cache makes three attempts, 10 to 20 s apart.
 *
 * A download cannot be called off. One that is over its deadline goes on unheard until its socket's own time-out (3 min),
 * which keeps Node running: after a failure the program has to end by process.exit.
 *
 * @throws DownloadFailed
 */
async function get(
  wanted: {
    readonly title: string
    readonly url: string
    readonly file: string
    readonly headers?: Record<string, string>
  },
  { log, now }: Surroundings,
  deadline: number,
): Promise<void> {
  const { url, authorization } = authorized(wanted.url)
  const relay = (text: string): void => {
    if (text.startsWith('::debug::')) log.debug(plain(text).replaceAll(url, shownUrl(url)))
    else if (text.trim() !== '') log.info(`${wanted.title}: ${text.trim()}`)
  }
  const work = takingStdout(relay, () => downloadTool(url, wanted.file, authorization, wanted.headers))
  let timer: NodeJS.Timeout | undefined
  const limit = Math.max(1, deadline - now())
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new DownloadFailed(`had not sent it all after ${formatDuration(limit)}`)), limit)
  })
  try {
    await Promise.race([work, late])
  } catch (thrown) {
    throw thrown instanceof DownloadFailed ? thrown : downloadFailed(thrown)
  } finally {
    clearTimeout(timer)
  }
}

/** Reads a file through once. */
async function contentOf(file: string): Promise<Content> {
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

async function newFolder(name: string, { folder }: Surroundings): Promise<string> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return await mkdtemp(join(folder, `${name}-`))
}

/** A workflow command of @actions/core as the text that it was made from. */
function plain(text: string): string {
  return text
    .trim()
    .replace(/^::debug::/, '')
    .replaceAll('%0A', '\n')
    .replaceAll('%0D', '\r')
    .replaceAll('%25', '%')
}

async function isThere(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  )
}
