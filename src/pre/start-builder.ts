import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mirroredRegistries, ownRegistry, type RegistryEntry } from '../builder/buildkitd-config.ts'
import { DEPLOYMENT } from '../builder/buildx.ts'
import { defaultConfig } from '../builder/config-folder.ts'
import { startBuilder } from '../builder/start.ts'
import {
  letPodsBegin,
  makeNamespace,
  podsNotReady,
  waitUntilNodesTakePods,
  waitUntilPodsReady,
} from '../cluster/deployment.ts'
import { formatDuration } from '../lib/duration.ts'
import type { Mirror } from '../registry-mirrors.ts'
import type { Created } from './create.ts'
import { logOf, type Use } from './use.ts'

/** How long a wait that is over may take to say why, in milliseconds. Without one it is what buildx has to make a builder. */
const NOTICE = 60_000

/** Its pods start while the cluster's own do: the image is there, and a node takes them as soon as it is ready. */
export async function startBuilderIn(use: Use, { kubeconfig, registry }: Created): Promise<void> {
  const { world, options, plan, buildx } = use
  if (options.builder === undefined || plan.builder === undefined || buildx === undefined) return
  // A cluster whose nodes are not ready in time says so itself, a moment before.
  const inTime = AbortSignal.any([world.signal, AbortSignal.timeout(options.wait + NOTICE)])
  if (options.wait > 0) await waitUntilNodesTakePods(kubeconfig, plan.nodes, { ...logOf(world), signal: inTime })
  const started = performance.now()
  const { name, configFolder } = plan.builder
  const { builder } = options
  const place = (namespace: string) => ({ namespace, name: DEPLOYMENT })
  await world.timeline.span('Start the builder', () =>
    startBuilder(
      buildx,
      {
        ...{ name, options: builder, kubeconfig: plan.kubeconfig, folder: plan.folder, wait: options.wait > 0 },
        limit: options.wait + NOTICE,
        registries: registriesOf(use, registry),
        defaultConfig: defaultConfig(configFolder),
      },
      {
        makeNamespace: namespace => makeNamespace(kubeconfig, namespace),
        letPodsBegin: (namespace, replicas) => letPodsBegin(kubeconfig, place(namespace), replicas),
        podsReady: (namespace, signal) =>
          waitUntilPodsReady(kubeconfig, place(namespace), 'builder', options.wait, {
            ...logOf(world),
            signal: AbortSignal.any([world.signal, signal]),
          }),
        notReady: namespace => podsNotReady(kubeconfig, place(namespace)),
      },
    ),
  )
  world.report.addresses.push({ what: 'builder, of docker buildx', value: name })
  const state = options.wait > 0 ? `is ready after ${formatDuration(performance.now() - started)}` : 'is made'
  world.host.info(`The builder ${name} ${state}`)
}

/** The job's registry and the nodes' mirrors, whose certificate authorities are written for buildx to take along. */
function registriesOf({ mirrors, plan }: Use, registry: Created['registry']): RegistryEntry[] {
  const caFile = (mirror: Mirror): string => join(plan.folder, `builder-ca-${mirrors.indexOf(mirror) + 1}.pem`)
  for (const mirror of mirrors) if (mirror.ca !== undefined) writeFileSync(caFile(mirror), mirror.ca, { mode: 0o600 })
  return [...(registry === undefined ? [] : ownRegistry(registry)), ...mirroredRegistries(mirrors, caFile)]
}
