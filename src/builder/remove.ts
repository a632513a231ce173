import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Problem } from '../lib/problem.ts'
import type { BuilderPlan } from '../plan.ts'
import { type Buildx, errorIn, forgetBuilder } from './buildx.ts'
import { removeNew, unlinkPlugin } from './config-folder.ts'

/** How long it may take, in milliseconds: what it does is local, but waits for other commands of buildx. */
const LIMIT = 5000

/**
 * Takes the builder out of buildx' configuration, which is then as it was. Its pods go with the cluster. Twice is fine.
 *
 * @throws Problem that says what is left and how to remove it
 */
export async function removeBuilder(
  buildx: Buildx,
  { name, fetched, configFolder, missing }: BuilderPlan,
): Promise<void> {
  if (existsSync(join(configFolder, 'instances', name))) {
    const { code, stderr } = await buildx.try(forgetBuilder(name), {
      env: { BUILDX_CONFIG: configFolder },
      timeout: LIMIT,
    })
    if (code !== 0) {
      throw new Problem(
        `builder: buildx does not forget ${name} (${errorIn(stderr)}); docker buildx rm --keep-daemon ${name} does`,
      )
    }
  }
  if (fetched !== undefined) unlinkPlugin(fetched)
  removeNew(configFolder, missing)
}
