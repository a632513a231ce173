/**
 * The tool cache: a program is there once, verified, for all jobs of a machine.
 *
 * @actions/tool-cache keeps the cache's layout. It reads RUNNER_TOOL_CACHE from process.env itself: where a host gives a
 * `cacheFolder`, it has set that variable to the same folder.
 */
import { constants } from 'node:fs'
import { access, chmod, mkdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cacheDir, find } from '@actions/tool-cache'
import { lock } from 'proper-lockfile'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { takingStdout } from '../lib/stdout.ts'
import { contentOf, download, PATIENCE } from './download.ts'
import { codeOf } from './download-failed.ts'
import { type Program, type Surroundings, title, type Wanted } from './program.ts'
import { shownUrl } from './release.ts'

/** Milliseconds after which the lock of a process that was killed counts for nothing; a living holder renews it. */
const STALE = 20_000
const RENEWED = 4_000

/** How long to leave a lock alone that another job has, in milliseconds: at first, and at last. */
const PAUSES = { from: 50, to: 500 }

/** From the cache, or from the page into the cache. Of several processes one downloads, and the others wait for it. */
export async function obtain(wanted: Wanted, surroundings: Surroundings): Promise<Program> {
  const { log, now, patience = PATIENCE } = surroundings
  const deadline = now() + patience.limit
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
    const why = WHY_NOT[state]
    if (why !== undefined) log.info(`the cached ${title(wanted)} ${why}; downloading it again`)
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

type CacheState = 'good' | 'absent' | 'another' | 'damaged' | 'open'

/** Why what the cache has is not taken, where people should know. */
const WHY_NOT: Readonly<Partial<Record<CacheState, string>>> = {
  damaged: 'is not the file that was cached',
  open: "can be written by another user, or is one's",
}

/**
 * Compares a program with the sha256 that was written beside it when it was verified: a disk that was full, a job that was
 * killed or a careless clean-up leave files that are there and do not run. Neither is worth anything where another user can write them.
 */
async function stateIn(folder: string | undefined, wanted: Wanted): Promise<CacheState> {
  if (folder === undefined) return 'absent'
  const file = join(folder, wanted.name)
  try {
    const stats = await Promise.all([folder, file, `${file}.sha256`].map(path => stat(path)))
    if (!stats.every(one => isOursAlone(one, process.getuid?.()))) return 'open'
    const verified = (await readFile(`${file}.sha256`, 'utf8')).trim()
    if (verified !== (await contentOf(file)).sha256) return 'damaged'
    return wanted.sha256 === undefined || wanted.sha256 === verified ? 'good' : 'another'
  } catch {
    return (await isThere(folder)) ? 'damaged' : 'absent'
  }
}

/**
 * Whether nobody but this user and root can have written something.
 *
 * @param user this user's id; undefined where the system has none
 */
export function isOursAlone(
  { uid, mode }: { readonly uid: number; readonly mode: number },
  user: number | undefined,
): boolean {
  return user === undefined || ((uid === user || uid === 0) && (mode & 0o002) === 0)
}

/** @returns the folder in the tool cache; undefined where it could not be kept there */
async function cache(downloaded: string, wanted: Wanted, { log }: Surroundings): Promise<string | undefined> {
  try {
    // The folder as a whole, so that tool-cache's .complete comes after the checksum.
    const folder = await takingStdout(
      text => log.debug(plain(text)),
      () => cacheDir(downloaded, cacheName(wanted), wanted.version, wanted.platform.arch),
    )
    // It is made with the umask of the job.
    await chmod(folder, 0o755)
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
    retries: 0,
    stale: STALE,
    update: RENEWED,
    // Whoever took it may replace what we cache; stateIn() sees that.
    onCompromised: (error: Error) => log.debug(`${file}.lock: ${error.message}`),
  }
  const take = async (): Promise<() => Promise<void>> => {
    const release = await lock(file, options)
    return () => release().catch(error => log.debug(messageOf(error)))
  }
  const started = now()
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
    return await take()
  } catch (thrown) {
    if (codeOf(thrown) !== 'ELOCKED') {
      log.info(`the tool cache cannot be written (${messageOf(thrown)}); this job has its own ${title(wanted)}`)
      return undefined
    }
  }
  log.info(`waiting for another job that installs ${title(wanted)}`)
  // proper-lockfile's own retries say another thing when their time is over and no attempt of them was made.
  for (let pause = PAUSES.from; ; pause = Math.min(pause * 1.3, PAUSES.to)) {
    if (now() >= deadline) {
      throw new Problem(
        `${wanted.option}: another job has been installing ${title(wanted)} for ${formatDuration(now() - started)}; if there is none, remove ${file}.lock`,
      )
    }
    await sleep(pause)
    try {
      return await take()
    } catch (thrown) {
      if (codeOf(thrown) !== 'ELOCKED') throw thrown
    }
  }
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
