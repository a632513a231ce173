import { DEPLOYMENT } from '../builder/buildx.ts'
import { startBuilder } from '../builder/start.ts'
import type { Connection } from '../cluster/connect.ts'
import { makeNamespace, podsNotReady, waitUntilPodsReady } from '../cluster/deployment.ts'
import { formatDuration } from '../lib/duration.ts'
import { logOf, type Use } from './use.ts'

/** Its pods start while the cluster's own do: the image is there, and a node takes them as soon as it is ready. */
export async function startBuilderIn(
  { world, options, plan, buildx }: Use,
  kubeconfig: Connection['kubeconfig'],
): Promise<void> {
  if (options.builder === undefined || plan.builder === undefined || buildx === undefined) return
  const started = performance.now()
  const { name } = plan.builder
  const { builder } = options
  const place = (namespace: string) => ({ namespace, name: DEPLOYMENT })
  await world.timeline.span('Start the builder', () =>
    startBuilder(
      buildx,
      { name, options: builder, kubeconfig: plan.kubeconfig, folder: plan.folder, wait: options.wait > 0 },
      {
        makeNamespace: namespace => makeNamespace(kubeconfig, namespace),
        podsReady: namespace => waitUntilPodsReady(kubeconfig, place(namespace), 'builder', options.wait, logOf(world)),
        notReady: namespace => podsNotReady(kubeconfig, place(namespace)),
      },
    ),
  )
  world.report.addresses.push({ what: 'builder, of docker buildx', value: name })
  const state = options.wait > 0 ? `is ready after ${formatDuration(performance.now() - started)}` : 'is made'
  world.host.info(`The builder ${name} ${state}`)
}
