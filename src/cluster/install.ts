/** Puts programs where the job finds them: from PATH, from the tool cache, or from a release page. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../lib/problem.ts'
import type { KindVersion, KubectlVersion } from '../options.ts'
import { contentOf, get, newFolder } from './download.ts'
import { DownloadFailed } from './download-failed.ts'
import { KIND, KIND_CHECKSUMS, NODE_IMAGES } from './kind-releases.ts'
import { obtain } from './obtain.ts'
import { kindOnPath, kubectlOnPath } from './on-path.ts'
import type { Program, Surroundings } from './program.ts'
import { describeContent, latestUrl, platformOf, RELEASE_PAGES, releaseIn, shownUrl } from './release.ts'

/** `latest` has a fallback, so it is not waited for as long. */
const LATEST_LIMIT = 15_000

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
