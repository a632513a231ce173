/** BuildKit's buildkitd.toml: https://docs.docker.com/build/buildkit/toml-configuration. Pure. */
import type { BuilderOptions } from '../options.ts'
import type { Mirror } from '../registry-mirrors.ts'
import { isTrue } from './buildx.ts'

/** What BuildKit is told of one registry. */
export interface RegistryEntry {
  /** As it stands in image names. */
  readonly host: string
  /** True where it speaks plain HTTP. */
  readonly plain: boolean
  /** What is asked in its place when an image is pulled; pushes go to the registry itself. */
  readonly mirrors: readonly string[]
  /** Path of a certificate authority's file, which buildx takes along. */
  readonly ca?: string
}

/** The job's registry: BuildKit's pods reach it by the name for the cluster's network alone. */
export function ownRegistry(names: { readonly engine: string; readonly step: string; readonly internal: string }) {
  const { engine, step, internal } = names
  const others = [...new Set([engine, step])].filter(host => host !== internal)
  return [
    { host: internal, plain: true, mirrors: [] },
    ...others.map(host => ({ host, plain: false, mirrors: [internal] })),
  ]
}

/**
 * The mirrors of registries: each registry with its mirrors in order, and what is to be known of the mirrors' own hosts. Their
 * passwords are not for this file: BuildKit has them from the docker CLI.
 *
 * @param caFile where the certificate authority of a mirror stands
 */
export function mirroredRegistries(mirrors: readonly Mirror[], caFile: (mirror: Mirror) => string): RegistryEntry[] {
  const upstreams = [...new Set(mirrors.map(({ upstream }) => upstream))].map(upstream => ({
    host: upstream,
    plain: false,
    mirrors: mirrors
      .filter(mirror => mirror.upstream === upstream)
      .map(({ host, path }) => (path === '' ? host : `${host}/${path}`)),
  }))
  const hosts = new Map(mirrors.map(mirror => [mirror.host, mirror]))
  const own = [...hosts.values()]
    .filter(({ scheme, ca }) => scheme === 'http' || ca !== undefined)
    .map(mirror => ({
      host: mirror.host,
      plain: mirror.scheme === 'http',
      mirrors: [],
      ...(mirror.ca === undefined ? {} : { ca: caFile(mirror) }),
    }))
  return [...upstreams, ...own]
}

/**
 * Adds registries to a buildkitd.toml. One that it has already is left as the user wrote it.
 *
 * @returns undefined where there is nothing to say
 */
export function withRegistries(config: string | undefined, entries: readonly RegistryEntry[]): string | undefined {
  const added = entries
    .filter(({ host }, index) => entries.findIndex(entry => entry.host === host) === index)
    .filter(({ host }) => config === undefined || !hasRegistry(config, host))
    .map(table)
  return added.length === 0 ? config : [...(config === undefined ? [] : [config.trimEnd(), '']), ...added].join('\n')
}

function hasRegistry(config: string, host: string): boolean {
  return config
    .split('\n')
    .map(line => line.replace(/[\s"']/g, ''))
    .some(line => line.startsWith(`[registry.${host}]`))
}

function table({ host, plain, mirrors, ca }: RegistryEntry): string {
  const lines = [
    `[registry.${JSON.stringify(host)}]`,
    ...(plain ? ['  http = true'] : []),
    ...(ca === undefined ? [] : [`  ca = ${JSON.stringify([ca])}`]),
    ...(mirrors.length > 0 ? [`  mirrors = ${JSON.stringify(mirrors)}`] : []),
  ]
  return `${lines.join('\n')}\n`
}

/**
 * The flags of a BuildKit that is to read its buildkitd.toml. The driver mounts it where a BuildKit that is not root does not look
 * (driver/kubernetes/manifest in buildx' source, util/appdefaults in BuildKit's).
 */
export function flagsWithConfig({ driver, flags }: Pick<BuilderOptions, 'driver' | 'flags'>): string | undefined {
  if (!isTrue(driver['rootless']) || /(^|\s)--config\b/.test(flags ?? '')) return flags
  return [...(flags === undefined ? [] : [flags]), '--config=/etc/buildkit/buildkitd.toml'].join(' ')
}
