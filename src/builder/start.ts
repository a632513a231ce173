import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { formatDuration } from '../lib/duration.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { CommandFailed } from '../lib/run.ts'
import type { BuilderOptions } from '../options.ts'
import { flagsWithConfig, type RegistryEntry, withRegistries } from './buildkitd-config.ts'
import { type Buildx, createBuilder, errorIn } from './buildx.ts'
import { writeConfig } from './prepare.ts'

/** What the builder's start needs of the cluster. */
export interface BuilderCluster {
  /** Makes the namespace where there is none of that name. */
  makeNamespace(name: string): Promise<void>
  /** Lets that many pods begin where the builder was made without any. */
  letPodsBegin(namespace: string, replicas: number): Promise<void>
  /** Watches the pods until they are ready or the signal aborts; @throws Problem at the deadline, or with what keeps one from starting. */
  podsReady(namespace: string, signal: AbortSignal): Promise<void>
  /** A line for each pod that is not ready, with its events. */
  notReady(namespace: string): Promise<string[]>
}

/**
 * Makes the builder and its pods, and waits until they are ready. buildx makes what its driver makes, first for no pods: they begin
 * when the cluster has made them quick to be ready. Then buildx counts ready pods; why one does not start is seen beside it.
 *
 * @param given.name the builder's
 * @param given.kubeconfig the path by which later commands reach the cluster too
 * @param given.folder where a buildkitd.toml is written
 * @param given.registries what its buildkitd.toml says of registries by itself
 * @param given.defaultConfig the buildkitd.toml that the user has for every builder
 * @param given.limit milliseconds that buildx may take
 * @param given.wait false makes only the builder; its first build makes the pods then
 */
export async function startBuilder(
  buildx: Buildx,
  given: {
    readonly name: string
    readonly options: BuilderOptions
    readonly kubeconfig: string
    readonly folder: string
    readonly wait: boolean
    readonly limit: number
    readonly registries: readonly RegistryEntry[]
    readonly defaultConfig: string | undefined
  },
  cluster: BuilderCluster,
): Promise<void> {
  const { name, options, kubeconfig, wait } = given
  const namespace = options.driver['namespace'] || 'default'
  if (namespace !== 'default') await cluster.makeNamespace(namespace)
  const config = withRegistries(options.config ?? given.defaultConfig, given.registries)
  const configFile = await writeConfig(buildx, config, given.folder)
  const flags = config === undefined ? options.flags : flagsWithConfig(options)
  const create = { name, options: { driver: options.driver, flags }, configFile, boot: wait }
  const replicas = Number(options.driver['replicas'] ?? 1)
  if (wait && replicas > 0) {
    await makeWithoutPods(buildx, create, given)
    await cluster.letPodsBegin(namespace, replicas)
  }
  const running = buildx.start(createBuilder(create), { env: { KUBECONFIG: kubeconfig }, timeout: given.limit })
  running.stdout.resume()
  const created = running.ended.catch(async (error: unknown) => {
    if (!(error instanceof CommandFailed) || error.endedBy === 'abort') throw error
    const isLate = error.endedBy === 'timeout'
    const said = isLate ? `it was not through within ${formatDuration(error.limit)}` : errorIn(error.result.stderr)
    const held = await cluster.notReady(namespace).catch(why => [messageOf(why)])
    throw new Problem(
      [`builder: docker buildx does not start it: ${said}`, ...held.map(line => `  ${line}`)].join('\n'),
    )
  })
  const through = new AbortController()
  const failed = wait ? cluster.podsReady(namespace, through.signal).then(() => created) : created
  try {
    // buildx knows best what its driver makes: of the watch only a failure counts.
    await Promise.race([created, failed])
  } catch (error) {
    running.end()
    throw error
  } finally {
    through.abort()
  }
}

/** What goes wrong here goes wrong once more when the builder itself is made, and is said then. */
async function makeWithoutPods(
  buildx: Buildx,
  create: Parameters<typeof createBuilder>[0],
  { kubeconfig, folder }: { readonly kubeconfig: string; readonly folder: string },
): Promise<void> {
  const { driver, flags } = create.options
  const trial = await mkdtemp(join(folder, 'buildx-'))
  try {
    await buildx.try(createBuilder({ ...create, options: { driver: { ...driver, replicas: '0' }, flags } }), {
      env: { BUILDX_CONFIG: trial, KUBECONFIG: kubeconfig },
    })
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}
