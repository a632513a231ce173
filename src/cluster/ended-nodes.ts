import { nodeStates } from '../engine/containers.ts'
import type { Docker } from '../engine/docker.ts'
import type { Plan } from '../plan.ts'

/**
 * Tells which nodes of a failed cluster do not run any more, and why: a node that ran out of memory takes what was in it
 * along without a word of its own.
 *
 * @returns a sentence for each
 */
export async function endedNodes(docker: Docker, plan: Pick<Plan, 'nodes'>): Promise<string[]> {
  // Nodes that were never made are told on stderr; those that were are told all the same.
  const { stdout } = await docker.try(nodeStates(plan.nodes), { timeout: 5000 })
  return stdout.split('\n').flatMap(line => {
    const [name = '', status, code, outOfMemory] = line.replace(/^\//, '').split('|')
    if (status === undefined || (status === 'running' && outOfMemory !== 'true')) return []
    const why = outOfMemory === 'true' ? 'it ran out of memory: give the engine more, or run less' : `exit code ${code}`
    return [`node ${name}: ${status}, ${why}`]
  })
}
