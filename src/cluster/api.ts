/** Questions to the cluster's API server that are answered at once. Those that wait for something are in watch.ts. */
import type { ApiConstructor, KubeConfig } from '@kubernetes/client-node'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { within } from '../lib/within.ts'

/** How long the API server may take to answer one question, in milliseconds: one on a machine under load takes seconds. */
const LIMIT = 60_000

/**
 * Asks the API server. client-node itself waits for an answer without an end, also from a machine that is gone.
 *
 * @param api one of client-node's, such as CoreV1Api
 * @param what the question, as the end of a sentence: "which version it has"
 * @param limit milliseconds
 * @throws Problem at the limit
 */
export async function ask<A extends object, T>(
  kubeconfig: KubeConfig,
  api: ApiConstructor<A>,
  what: string,
  question: (client: A) => Promise<T>,
  limit = LIMIT,
): Promise<T> {
  return within(
    limit,
    question(kubeconfig.makeApiClient(api)),
    () =>
      new Problem(
        `the API server at ${kubeconfig.getCurrentCluster()?.server} did not answer within ${formatDuration(limit)} (${what}); look at the log and the load of the engine that runs it`,
      ),
  )
}
