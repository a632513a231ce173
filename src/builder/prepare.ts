/** What can be said of a builder before anything is made. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Problem } from '../lib/problem.ts'
import type { BuilderOptions } from '../options.ts'
import { type Buildx, configFlag, createBuilder, createHelp, errorIn } from './buildx.ts'

/** A kubeconfig of a cluster that does not answer: buildx wants one to create a builder, and asks nothing of it. */
const NOBODY = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'nobody',
  contexts: [{ name: 'nobody', context: { cluster: 'nobody', user: 'nobody' } }],
  clusters: [{ name: 'nobody', cluster: { server: 'http://127.0.0.1:1' } }],
  users: [{ name: 'nobody', user: {} }],
})

/**
 * Lets buildx judge the options, by a builder that is never used, in a folder of configuration that is thrown away.
 *
 * @param folder where it may make folders of its own
 * @throws Problem with buildx' own refusal
 */
export async function judgeBuilder(buildx: Buildx, options: BuilderOptions, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const trial = await mkdtemp(join(folder, 'buildx-'))
  try {
    const kubeconfig = join(trial, 'kubeconfig')
    await writeFile(kubeconfig, NOBODY)
    const configFile = await writeConfig(buildx, options.config, trial)
    const result = await buildx.try(createBuilder({ name: 'trial', options, configFile, boot: false }), {
      env: { BUILDX_CONFIG: join(trial, 'config'), KUBECONFIG: kubeconfig },
    })
    if (result.code !== 0) throw new Problem(`builder: docker buildx refuses it: ${errorIn(result.stderr)}`)
  } finally {
    await rm(trial, { recursive: true, force: true })
  }
}

/**
 * Writes a buildkitd.toml for buildx to read.
 *
 * @param config its text; undefined where there is none
 */
export async function writeConfig(
  buildx: Buildx,
  config: string | undefined,
  folder: string,
): Promise<Parameters<typeof createBuilder>[0]['configFile']> {
  if (config === undefined) return undefined
  const path = join(folder, 'buildkitd.toml')
  await writeFile(path, config, { mode: 0o600 })
  return { flag: configFlag((await buildx.try(createHelp)).stdout), path }
}
