/**
 * Every option: its name, type, default and sentence. action.yml, plugin.yml and the README's table are written from
 * this list (scripts/generate.ts); `parse` turns what a host was given into one readonly object. Pure, a leaf. A group
 * of options is a file of options/ and a page of docs/; what others need of them they import from here.
 */
import { type Given, readGiven } from './lib/given.ts'
import { BUILDER_OPTIONS, type BuilderOption, readBuilderOption } from './options/builder.ts'
import { CLUSTER_OPTIONS, type ClusterOptions, readClusterOptions } from './options/cluster.ts'
import { ENGINE_OPTIONS, type EngineOptions, readEngineOptions } from './options/engine.ts'
import { IMAGE_OPTIONS, type ImageOptions, readImageOptions } from './options/images.ts'
import { LIFECYCLE_OPTIONS, type LifecycleOptions, readLifecycleOptions } from './options/lifecycle.ts'
import type { Option, OptionGroup, ParseWorld } from './options/option.ts'
import { REGISTRY_OPTIONS, type RegistryOptions, readRegistryOptions } from './options/registry.ts'

export type { BuilderOptions } from './options/builder.ts'
export type { KindVersion, KubectlVersion, NodeImage, PortMapping } from './options/cluster.ts'
export { clusterName } from './options/cluster.ts'
export type { DownloadName } from './options/engine.ts'
export { dockerHost } from './options/engine.ts'
export { images, isArchiveName } from './options/images.ts'
export type { When } from './options/lifecycle.ts'
export { LIFETIME } from './options/lifecycle.ts'
export type { Option, ParseWorld } from './options/option.ts'

/** The groups as people see them, in this order. */
export const OPTION_GROUPS: readonly OptionGroup[] = [
  { title: 'The cluster', page: 'docs/cluster.md', options: CLUSTER_OPTIONS },
  { title: 'Images', page: 'docs/images.md', options: IMAGE_OPTIONS },
  { title: 'Registry', page: 'docs/registry.md', options: REGISTRY_OPTIONS },
  { title: 'Builder', page: 'docs/builder.md', options: BUILDER_OPTIONS },
  { title: 'The engine', page: 'docs/engine.md', options: ENGINE_OPTIONS },
  { title: 'After the job', page: 'docs/lifecycle.md', options: LIFECYCLE_OPTIONS },
]

export const OPTIONS: readonly Option[] = OPTION_GROUPS.flatMap(({ options }) => options)

export interface Options
  extends ClusterOptions,
    ImageOptions,
    RegistryOptions,
    BuilderOption,
    EngineOptions,
    LifecycleOptions {}

/**
 * Parses what a host was given.
 *
 * @param given values by option name: strings (GitHub, a shell) or what the pipeline's YAML held (Buildkite)
 * @param world how files are read, and which Kubernetes versions there are
 * @throws Problem with one line for each option that is wrong, all at once
 */
export function parse(given: Readonly<Record<string, Given>>, world: ParseWorld): Options {
  const reader = readGiven(
    given,
    OPTIONS.map(known => known.name),
  )
  const options: Options = {
    ...readClusterOptions(reader, world),
    ...readImageOptions(reader),
    ...readRegistryOptions(reader, world),
    ...readBuilderOption(reader, world),
    ...readEngineOptions(reader),
    ...readLifecycleOptions(reader),
  }
  const registryPort = options.registry?.port
  if (
    options.ports.some(({ outer, protocol }) => protocol === 'TCP' && outer !== undefined && outer === registryPort)
  ) {
    reader.refuse(`registry, ports: both ask for the engine's port ${registryPort}`)
  }
  return reader.finish(options)
}
