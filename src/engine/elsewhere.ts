import type { Engine } from '../plan.ts'
import { ask } from './ask.ts'
import { endpointsInReach, type Surroundings } from './find.ts'

/** How long another engine may take to answer, in milliseconds: this is about a better sentence for a failure. */
const LIMIT = 1500

/**
 * The other engines in reach that have an image: people build on one engine and start the cluster on another. Asks, and changes
 * nothing.
 *
 * @param reference with its tag or digest
 * @returns each as `unix:///var/run/docker.sock (the default socket)`
 */
export async function enginesWith(
  reference: string,
  engine: Pick<Engine, 'address'>,
  around: Surroundings,
): Promise<readonly string[]> {
  const others = (await endpointsInReach(around)).filter(({ address }) => address !== engine.address)
  const answers = await Promise.all(
    others.map(async endpoint => {
      const answer = await ask<{ readonly Id?: string }>(endpoint, `/images/${reference}/json`, LIMIT)
      return answer.ok && answer.value.Id !== undefined ? [`${endpoint.address} (${endpoint.source})`] : []
    }),
  )
  return answers.flat()
}
