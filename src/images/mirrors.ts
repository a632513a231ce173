/** Mirrors of registries: what nodes are told of them. */
import { isLoopback } from '../engine/find.ts'
import { basicAuth, type Mirror } from '../registry-mirrors.ts'
import { hostsFolder, type NodeFile } from './hosts.ts'

/**
 * The mirrors of nodes: those that were asked for, and behind them those of Docker Hub that the engine has itself, but for
 * what only the engine's own machine reaches.
 *
 * @param engineMirrors URLs, as docker info has them in RegistryConfig.Mirrors
 */
export function nodeMirrors(asked: readonly Mirror[], engineMirrors: readonly string[]): Mirror[] {
  const taken = engineMirrors
    .filter(url => URL.canParse(url))
    .map(url => new URL(url))
    .filter(({ hostname }) => hostname !== 'localhost' && !isLoopback(hostname.replace(/^\[|\]$/g, '')))
    .map(
      ({ protocol, host, pathname }): Mirror => ({
        upstream: 'docker.io',
        scheme: protocol === 'http:' ? 'http' : 'https',
        host,
        path: pathname.replace(/^\/+|\/+$/g, ''),
        credentials: undefined,
        ca: undefined,
      }),
    )
    .filter(({ host }) => !asked.some(mirror => mirror.upstream === 'docker.io' && mirror.host === host))
  return [...asked, ...taken]
}

/**
 * The nodes' files: for each registry a hosts.toml with its mirrors in order and itself last, and beside it their CAs.
 * https://github.com/containerd/containerd/blob/main/docs/hosts.md
 */
export function mirrorFiles(mirrors: readonly Mirror[]): NodeFile[] {
  return [...new Set(mirrors.map(({ upstream }) => upstream))].flatMap(upstream => {
    const own = mirrors.filter(mirror => mirror.upstream === upstream)
    const folder = hostsFolder(upstream)
    const server = upstream === 'docker.io' ? 'registry-1.docker.io' : upstream
    const hosts = own.map((mirror, index) => hostTable(mirror, caFile(index)))
    return [
      { path: `${folder}/hosts.toml`, content: [`server = "https://${server}"\n`, ...hosts].join('\n') },
      ...own.flatMap(({ ca }, index) =>
        ca === undefined ? [] : [{ path: `${folder}/${caFile(index)}`, content: ca }],
      ),
    ]
  })
}

const caFile = (index: number): string => `mirror-${index + 1}.pem`

function hostTable({ scheme, host, path, credentials, ca }: Mirror, caFile: string): string {
  const name = `host.${JSON.stringify(path === '' ? `${scheme}://${host}` : `${scheme}://${host}/v2/${path}`)}`
  return [
    `[${name}]`,
    '  capabilities = ["pull", "resolve"]',
    ...(path === '' ? [] : ['  override_path = true']),
    ...(ca === undefined ? [] : [`  ca = ${JSON.stringify(caFile)}`]),
    // containerd 1 takes the header's name as it stands here.
    ...(credentials === undefined ? [] : [`[${name}.header]`, `  Authorization = "Basic ${basicAuth(credentials)}"`]),
    '',
  ].join('\n')
}
