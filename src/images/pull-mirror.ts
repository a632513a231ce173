/** How the engine pulls from mirrors: by the mirror's own name for an image, which then gets the name that was asked for. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Docker, EngineLate } from '../engine/docker.ts'
import { imageArchitecture, pull, tagImage, untagImage } from '../engine/images.ts'
import { formatDuration } from '../lib/duration.ts'
import { whatItSaid } from '../lib/run.ts'
import { withoutSecrets } from '../lib/scrub.ts'
import { basicAuth, type Mirror } from '../registry-mirrors.ts'
import type { Reference } from './reference.ts'

/** What a pull by mirrors is told of the world. */
export interface MirrorWorld {
  readonly mirrors: readonly Mirror[]
  /** Where credentials may lie while the engine pulls: a folder of this user's alone. */
  readonly folder: string
  readonly info: (message: string) => void
}

/** The reference by which the engine pulls an image from a mirror. */
export function mirrored({ path, tag, digest }: Reference, mirror: Mirror): string {
  const folder = mirror.path === '' ? '' : `${mirror.path}/`
  return `${hostOf(mirror)}/${folder}${path}${digest === undefined ? `:${tag}` : `@${digest}`}`
}

/** A reference's first part without a dot or a port would be a folder of Docker Hub's. */
function hostOf({ host, scheme }: Mirror): string {
  return /[.:]/.test(host) ? host : `${host}:${scheme === 'http' ? 80 : 443}`
}

/**
 * Lets the engine pull an image from the mirrors of its registry, in their order. It is the engine that must reach them and
 * trust them: its insecure-registries and its CAs cannot be changed from here.
 *
 * @param limit milliseconds for each pull
 * @returns the name by which the engine has the image: the one asked for, or the mirror's where a digest was asked for, which
 *   no tag stands in for; undefined where no mirror gave it
 */
export async function pullFromMirror(
  docker: Docker,
  reference: Reference,
  world: MirrorWorld,
  limit: number,
): Promise<string | undefined> {
  const isThere = async (name: string): Promise<boolean> => (await docker.try(imageArchitecture(name))).code === 0
  for (const mirror of world.mirrors.filter(({ upstream }) => upstream === reference.registry)) {
    const name = mirrored(reference, mirror)
    const wasThere = await isThere(name)
    const pulled = await withCredentials(mirror, world.folder, flags =>
      docker.try([...flags, ...pull(name)], { timeout: limit }).catch((error: unknown) => {
        if (!(error instanceof EngineLate)) throw error
        return { code: 1, stdout: '', stderr: `nothing whole within ${formatDuration(limit)}` }
      }),
    )
    if (pulled.code !== 0) {
      const said = withoutSecrets(whatItSaid(pulled, 1).replace(/^Error response from daemon: /, ''))
      world.info(`The mirror ${mirror.host} does not give the engine ${reference.given}: ${said}`)
      continue
    }
    if (reference.digest !== undefined) return name
    // Another use may pull the same image, and have taken the mirror's tag away by now.
    const tagged = await docker.try(tagImage(name, reference.given))
    if (!wasThere) await docker.try(untagImage(name))
    if (tagged.code === 0 || (await isThere(reference.given))) return reference.given
  }
  return undefined
}

/**
 * Lets docker do something with a mirror's credentials: it takes them from its config alone, so it gets one of its own.
 *
 * @param work gets flags for docker
 */
async function withCredentials<T>(
  mirror: Mirror,
  folder: string,
  work: (flags: readonly string[]) => Promise<T>,
): Promise<T> {
  if (mirror.credentials === undefined) return work([])
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const config = mkdtempSync(join(folder, 'mirror-'))
  try {
    const auths = { [hostOf(mirror)]: { auth: basicAuth(mirror.credentials) } }
    writeFileSync(join(config, 'config.json'), JSON.stringify({ auths }), { mode: 0o600 })
    return await work([`--config=${config}`])
  } finally {
    rmSync(config, { recursive: true, force: true })
  }
}
