import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Environment } from '../host/host.ts'
import { messageOf, Problem } from '../lib/problem.ts'
import { LIFETIME } from '../options.ts'
import { type BuilderPlan, builderName } from '../plan.ts'
import { type Buildx, errorIn, forgetBuilder } from './buildx.ts'
import { buildxFolder, hasBuilders, linkedBuildx, removeNew, unlinkPlugin } from './config-folder.ts'

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
  // Another job of this user may use the link, whose own end takes it away then.
  if (fetched !== undefined && !hasBuilders(configFolder)) unlinkPlugin(fetched)
  removeNew(configFolder, missing)
}

/**
 * Takes out the builders of killed jobs that no folder tells of any more: GitHub's runner empties that of temporary files before
 * each job (TempDirectoryManager in its source). It is known by the record of the job on the engine, or, where that is gone as well,
 * by its age and a kubeconfig that is not there. A buildx of this program's that is linked goes with the last of them.
 *
 * @param env tells where the docker CLI and buildx keep their configuration
 * @param uses of jobs that are over, as labels on the engine name them
 * @param now milliseconds since 1970
 * @returns for each one that buildx does not forget, why
 */
export async function removeLeftBuilders(
  buildx: Buildx,
  env: Environment,
  uses: readonly Parameters<typeof builderName>[0][],
  now: number,
): Promise<string[]> {
  const configFolder = buildxFolder(env)
  const fetched = linkedBuildx(env)
  const folder = join(configFolder, 'instances')
  const over = uses.map(builderName)
  const left = (existsSync(folder) ? readdirSync(folder) : []).filter(
    name => over.includes(name) || (/^kind-in-dind-./.test(name) && isOver(join(folder, name), now)),
  )
  const tried = left.map(name => removeBuilder(buildx, { name, fetched, configFolder, missing: [] }))
  const results = await Promise.allSettled(tried)
  return results.flatMap(result => (result.status === 'rejected' ? [messageOf(result.reason)] : []))
}

/** Whether the file of a builder is older than any job, and its kubeconfig went with that job. */
function isOver(file: string, now: number): boolean {
  try {
    if (statSync(file).mtimeMs + LIFETIME > now) return false
    const { Nodes } = JSON.parse(readFileSync(file, 'utf8')) as {
      readonly Nodes: readonly { readonly Endpoint: string }[]
    }
    const kubeconfigs = Nodes.map(({ Endpoint }) => new URL(Endpoint).searchParams.get('kubeconfig'))
    return kubeconfigs.every(path => path !== null && !existsSync(path))
  } catch {
    return false
  }
}
