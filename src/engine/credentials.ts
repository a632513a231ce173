import type { Surroundings } from './find.ts'

/** A program that docker's config names for a registry's credentials and that is not there. */
export interface MissingHelper {
  /** `docker-credential-ecr-login`. */
  readonly program: string
  /** The config's path. */
  readonly config: string
}

/**
 * The credential helper of a registry, where it is missing. docker itself says nothing of it: it goes on without credentials.
 *
 * @param registry with its port: `docker.io`
 */
export function missingHelper(
  registry: string,
  { env, readFile, exists }: Pick<Surroundings, 'env' | 'readFile' | 'exists'>,
): MissingHelper | undefined {
  const config = `${env['DOCKER_CONFIG'] || `${env['HOME'] ?? ''}/.docker`}/config.json`
  const suffix = helperIn(readFile(config) ?? '', registry)
  if (suffix === undefined) return undefined
  const program = `docker-credential-${suffix}`
  const folders = (env['PATH'] ?? '').split(':').filter(folder => folder !== '')
  return folders.some(folder => exists(`${folder}/${program}`)) ? undefined : { program, config }
}

/** https://docs.docker.com/reference/cli/docker/login/#credential-helpers: one for the registry goes before the store for all. */
function helperIn(json: string, registry: string): string | undefined {
  try {
    const { credHelpers, credsStore } = JSON.parse(json) as {
      readonly credHelpers?: Readonly<Record<string, unknown>>
      readonly credsStore?: unknown
    }
    const keys = registry === 'docker.io' ? ['https://index.docker.io/v1/', 'index.docker.io', registry] : [registry]
    return [...keys.map(key => credHelpers?.[key]), credsStore].find(
      (value): value is string => typeof value === 'string' && value !== '',
    )
  } catch {
    return undefined
  }
}
