/** Gives the later commands of the job what they need to reach the cluster and, where it had to be found, the engine. */
import { smallest } from '../cluster/capacity.ts'
import type { Connection } from '../cluster/connect.ts'
import { networkSubnets } from '../engine/docker.ts'
import { engineExports } from '../engine/engine.ts'
import { aroundProxy, hasProxy } from '../engine/proxy.ts'
import { candidates } from '../engine/reach.ts'
import { memoryQuantity } from '../lib/quantity.ts'
import { type Outputs, portsOutput, variablesOf } from '../outputs.ts'
import type { Ready } from './make-ready.ts'
import type { Use } from './use.ts'

export async function exportAll(
  { world: { host }, plan, docker, kind }: Use,
  { server, host: reached, ports }: Connection,
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
    'node-image': plan.nodeImage,
    'kubernetes-version': version,
    cpus: `${least.cpus}`,
    memory: memoryQuantity(least.memory),
  }
  const subnets = hasProxy(host.env) ? (await docker.run(networkSubnets(plan.network))).stdout.trim().split('\n') : []
  await host.setOutputs(outputs)
  await host.exportVariables({
    ...variablesOf(outputs, ports),
    ...engineExports(plan.engine, host.env),
    ...aroundProxy(host.env, [...candidates(plan.engine, undefined), reached, ...plan.nodes, ...subnets, '.svc']),
  })
  for (const folder of [kind.folder, kubectl?.folder]) if (folder !== undefined) await host.addPath(folder)
}
