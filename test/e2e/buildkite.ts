/** Buildkite as its tests need it: an agent with the lab's engine and tools, beside an API and a release page that are played. */
import { createHash } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { type BuildkiteApi, startBuildkiteApi } from '../buildkite-api.ts'
import { kindPath, kubectlPath, startReleasePage } from '../release-page.ts'
import { type BuildkiteAgent, createBuildkiteAgent, PLUGIN } from './bootstrap.ts'
import { names, runner } from './lab.ts'

export interface Buildkite {
  readonly api: BuildkiteApi
  readonly agent: BuildkiteAgent
  /** Our plugin as a step names it, with a configuration of options that only the lab needs beside those given. */
  plugin(options: Readonly<Record<string, unknown>> | undefined): unknown
  /** How often Node was fetched from the page. */
  nodeFetches(): number
  remove(): Promise<void>
}

/**
 * @param given.programs more programs for jobs than docker and node, by name
 * @param given.dockerPlugins plugins of the docker CLI, by name
 * @param given.variables of every job
 * @param given.withoutNode whether the agent has no Node, and the page has one
 */
export async function startBuildkite(given: {
  readonly programs?: Readonly<Record<string, string>>
  readonly dockerPlugins?: Readonly<Record<string, string>>
  readonly variables: Readonly<Record<string, string>>
  readonly withoutNode?: boolean
}): Promise<Buildkite> {
  const api = await startBuildkiteApi()
  const node = given.withoutNode ? await archiveOfNode() : undefined
  const page = await startReleasePage({
    files: {
      [kindPath(names.kindVersion)]: { file: names.tools.kind },
      [kubectlPath(names.kubernetesVersion)]: { file: names.tools.kubectl },
      ...(node && { [NODE_PATH]: node }),
    },
  })
  const agent = createBuildkiteAgent({
    agent: names.tools.buildkiteAgent,
    engine: names.engine,
    endpoint: api.endpoint,
    programs: {
      docker: names.tools.docker,
      ...(node ? FETCHING : { node: names.tools.node }),
      ...given.programs,
    },
    nodeDigest: node && createHash('sha256').update(node).digest('hex'),
    dockerPlugins: given.dockerPlugins ?? {},
    variables: given.variables,
  })
  const { kind, kubectl } = page.templates
  const lab = {
    'node-image': names.images.node,
    'download-url': [`kind=${kind}`, `kubectl=${kubectl}`, `node=${page.url}${NODE_TEMPLATE}`],
  }
  return {
    api,
    agent,
    plugin: options => ({ [PLUGIN]: { ...lab, ...options } }),
    nodeFetches: () => page.count(NODE_PATH),
    remove: async () => {
      agent.remove()
      await page.close()
      await api.close()
    },
  }
}

/** What hooks/find-node needs to fetch a Node; flock so that one of several jobs does. */
const FETCHING = Object.fromEntries(
  ['chmod', 'cut', 'flock', 'gzip', 'head', 'id', 'mkdir', 'mv', 'sed', 'sha256sum', 'tar', 'uname'].map(name => [
    name,
    name,
  ]),
)

/** The release that hooks/find-node pins. */
const NODE = `v${/version=v([\d.]+)/.exec(readFileSync(join(import.meta.dirname, '../../hooks/find-node'), 'utf8'))?.[1]}`
const NODE_FOLDER = `node-${NODE}-linux-${process.arch}`
const NODE_PATH = `/${NODE}/${NODE_FOLDER}.tar.gz`
const NODE_TEMPLATE = '/v{version}/node-{version}-{os}-{arch}.tar.gz'

/** The lab's Node as an archive like Node's own, which has other bytes than the one that is pinned. */
async function archiveOfNode(): Promise<Buffer> {
  const folder = mkdtempSync(join(tmpdir(), 'node-'))
  try {
    const archive = join(folder, 'archive')
    const { node } = names.tools
    const name = `s,^,${NODE_FOLDER}/bin/,`
    await runner.run([
      'tar',
      ...['--create', '--dereference', '--use-compress-program', 'gzip -1', '--file', archive],
      ...['--transform', name, '--directory', dirname(node), basename(node)],
    ])
    return readFileSync(archive)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}
