/** Gives the later commands of the job what they need to reach the cluster and, where it had to be found, the engine. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { linkPlugin } from '../builder/config-folder.ts'
import { smallest } from '../cluster/capacity.ts'
import { engineExports } from '../engine/engine.ts'
import { networkSubnets } from '../engine/networks.ts'
import { aroundProxy, hasProxy } from '../engine/proxy.ts'
import { candidates } from '../engine/reach.ts'
import { memoryQuantity } from '../lib/quantity.ts'
import { shellQuote } from '../lib/shell.ts'
import { type Outputs, portsOutput, variablesOf } from '../outputs.ts'
import type { Plan } from '../plan.ts'
import type { World } from '../world.ts'
import type { Created } from './create.ts'
import type { Ready } from './make-ready.ts'
import type { Use } from './use.ts'

export async function exportAll(
  { world: { host, self }, plan, docker, kind }: Use,
  { server, host: reached, ports, registry }: Created,
  { version, capacity, kubectl }: Ready,
): Promise<void> {
  const least = smallest(capacity)
  const outputs: Outputs = {
    name: plan.cluster,
    kubeconfig: plan.kubeconfig,
    'kubeconfig-internal': plan.internalKubeconfig,
    server,
    host: reached,
    ports: portsOutput(ports),
    network: plan.network,
    registry: registry?.engine ?? '',
    'registry-host': registry?.step ?? '',
    'registry-internal': registry?.internal ?? '',
    'node-image': plan.nodeImage,
    'kubernetes-version': version,
    cpus: `${least.cpus}`,
    memory: memoryQuantity(least.memory),
    builder: plan.builder?.name ?? '',
    'logs-dir': plan.logsDir,
  }
  const subnets = hasProxy(host.env) ? (await docker.run(networkSubnets(plan.network))).stdout.trim().split('\n') : []
  await host.setOutputs(outputs)
  await host.exportVariables({
    ...variablesOf(outputs, ports),
    ...engineExports(plan.engine, host.env),
    ...aroundProxy(host.env, [
      ...candidates(plan.engine, undefined),
      reached,
      ...plan.nodes,
      ...(plan.registry === undefined ? [] : [plan.registry]),
      ...subnets,
      '.svc',
    ]),
  })
  const buildx = plan.builder?.fetched && offerBuildx(host, plan.builder.fetched)
  const folders = [writeLauncher(plan, self), kind.folder, kubectl?.folder, buildx]
  for (const folder of folders) if (folder !== undefined) await host.addPath(folder)
}

/**
 * Writes `kind-in-dind` for the later commands of the job, in the use's own folder, with which it goes.
 *
 * @returns the folder to put on PATH
 */
function writeLauncher({ folder }: Plan, { node, cli }: World['self']): string {
  const bin = join(folder, 'bin')
  mkdirSync(bin, { recursive: true })
  const job = shellQuote(dirname(folder))
  const script = `#!/bin/sh\nKIND_IN_DIND_FOLDER=${job} exec ${shellQuote(node)} ${shellQuote(cli)} "$@"\n`
  writeFileSync(join(bin, 'kind-in-dind'), script, { mode: 0o700 })
  return bin
}

/** Later commands find the fetched buildx as `docker buildx`, and by itself on PATH. */
function offerBuildx(host: Use['world']['host'], fetched: { readonly program: string; readonly link: string }): string {
  const why = linkPlugin(fetched)
  if (why !== undefined) {
    host.warning(
      `builder: the docker CLI cannot be given buildx as its plugin (${why}); run \`buildx build\` instead of \`docker buildx build\``,
    )
  }
  return dirname(fetched.program)
}
