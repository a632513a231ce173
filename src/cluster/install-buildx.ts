import { obtain } from './obtain.ts'
import type { Program, Surroundings } from './program.ts'
import { platformOf, RELEASE_PAGES } from './release.ts'
import { BUILDX } from './versions.ts'

/**
 * Installs buildx as a program of its own, which takes the arguments of `docker buildx`. Its releases have one checksum file
 * for all programs.
 *
 * @param asked.url the template of `download-url`, instead of the project's own page
 * @throws Problem where it cannot be had, or is not what its checksum promises
 */
export async function installBuildx(asked: Surroundings & { readonly url?: string | undefined }): Promise<Program> {
  const { url, ...surroundings } = asked
  const page = { ...RELEASE_PAGES.buildx, ...(url === undefined ? {} : { template: url }) }
  const platform = platformOf(surroundings.platform)
  return await obtain(
    { name: 'buildx', option: 'builder', version: BUILDX, sha256: undefined, platform, ...page },
    surroundings,
  )
}
