/** Buildkite as its tests need it: an agent with the lab's engine and tools, beside an API and a release page that are played. */
import { type BuildkiteApi, startBuildkiteApi } from '../buildkite-api.ts'
import { kindPath, kubectlPath, startReleasePage } from '../release-page.ts'
import { type BuildkiteAgent, createBuildkiteAgent, PLUGIN } from './bootstrap.ts'
import { names } from './lab.ts'

export interface Buildkite {
  readonly api: BuildkiteApi
  readonly agent: BuildkiteAgent
  /** Our plugin as a step names it, with a configuration of options that only the lab needs beside those given. */
  plugin(options: Readonly<Record<string, unknown>> | undefined): unknown
  remove(): Promise<void>
}

/**
 * @param given.programs more programs for jobs than docker and node, by name
 * @param given.dockerPlugins plugins of the docker CLI, by name
 * @param given.variables of every job
 */
export async function startBuildkite(given: {
  readonly programs?: Readonly<Record<string, string>>
  readonly dockerPlugins?: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
}): Promise<Buildkite> {
  const api = await startBuildkiteApi()
  const page = await startReleasePage({
    files: {
      [kindPath(names.kindVersion)]: { file: names.tools.kind },
      [kubectlPath(names.kubernetesVersion)]: { file: names.tools.kubectl },
    },
  })
  const agent = createBuildkiteAgent({
    agent: names.tools.buildkiteAgent,
    engine: names.engine,
    endpoint: api.endpoint,
    programs: { docker: names.tools.docker, node: names.tools.node, ...given.programs },
    dockerPlugins: given.dockerPlugins ?? {},
    variables: given.variables,
  })
  const { kind, kubectl } = page.templates
  const lab = { 'node-image': names.images.node, 'download-url': [`kind=${kind}`, `kubectl=${kubectl}`] }
  return {
    api,
    agent,
    plugin: options => ({ [PLUGIN]: { ...lab, ...options } }),
    remove: async () => {
      agent.remove()
      await page.close()
      await api.close()
    },
  }
}
