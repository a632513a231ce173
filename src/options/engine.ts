/** The options of the engine and the way to it, and of downloads. Pure. */
import { isIP } from 'node:net'
import { duration, type Given, list, type Reader, show, text } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import type { Option } from './option.ts'

export const ENGINE_OPTIONS: readonly Option[] = [
  {
    name: 'docker-host',
    schema: 'string',
    default: 'found',
    sentence: 'The engine, as DOCKER_HOST names it: `tcp://docker:2376` or `unix:///var/run/docker.sock`.',
  },
  {
    name: 'docker-wait',
    schema: 'duration',
    default: '60s',
    sentence: 'How long the engine may take to answer.',
  },
  {
    name: 'host',
    schema: 'string',
    default: 'found by trying',
    sentence:
      'Name or address by which the step reaches what the engine publishes, where it is not that of the engine.',
  },
  {
    name: 'network',
    schema: 'string',
    default: "one of the cluster's own",
    sentence: "An existing Docker network's name, which stays, or a name for one to make.",
  },
  {
    name: 'kubeconfig',
    schema: 'string',
    default: "a file in the job's folder",
    sentence: 'Where to write the kubeconfig (mode 0600): a new file, removed with the cluster.',
  },
  {
    name: 'download-url',
    schema: 'list',
    default: "the projects' own release pages",
    sentence:
      'Where to download from: `kind=https://mirror.example/{version}/kind-{os}-{arch}`, likewise `kubectl=`, `buildx=`, and `node=` for agents without Node 20.',
  },
]

/** What is downloaded; `node` by hooks/find-node, before this program can run. */
const DOWNLOADS = ['kind', 'kubectl', 'buildx', 'node'] as const
export type DownloadName = (typeof DOWNLOADS)[number]

export interface EngineOptions {
  readonly dockerHost: string | undefined
  /** Milliseconds. */
  readonly dockerWait: number
  readonly host: string | undefined
  readonly network: string | undefined
  readonly kubeconfig: string | undefined
  readonly downloadUrls: Readonly<Partial<Record<DownloadName, string>>>
}

export function readEngineOptions({ option }: Reader): EngineOptions {
  return {
    dockerHost: option('docker-host', dockerHost, undefined),
    dockerWait: option('docker-wait', duration, 60_000),
    host: option('host', hostName, undefined),
    network: option('network', networkName, undefined),
    kubeconfig: option('kubeconfig', text, undefined),
    downloadUrls: option('download-url', downloadUrls, {}),
  }
}

/** The option `docker-host`, of other commands too. */
export function dockerHost(value: Given): string {
  const address = text(value)
  if (!/^(tcp:\/\/(\[[0-9a-f:.]+\]|[^/@:]+)(:\d{1,5})?\/?|unix:\/\/\/.+)$/i.test(address)) {
    throw new Problem(
      `${show(value)} is not an engine's address such as tcp://docker:2376 or unix:///var/run/docker.sock`,
    )
  }
  return address
}

function hostName(value: Given): string {
  const name = text(value)
  if (!/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(name) && isIP(name) === 0) {
    throw new Problem(`${show(value)} is neither a host name nor an address; a port does not belong here`)
  }
  return name
}

/** Docker's names; its own three networks have no name resolution, which nodes need. */
function networkName(value: Given): string {
  const name = text(value)
  if (!/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(name)) throw new Problem(`${show(value)} is not a network's name`)
  if (['bridge', 'host', 'none', 'default'].includes(name)) {
    throw new Problem(`${name} is Docker's own, where nodes do not find each other by name; name another one`)
  }
  return name
}

function downloadUrls(value: Given): Partial<Record<DownloadName, string>> {
  const urls: Partial<Record<DownloadName, string>> = {}
  for (const word of list(value)) {
    const [, given, url] = /^(\w+)=(https?:\/\/\S+)$/.exec(word) ?? []
    const name = DOWNLOADS.find(known => known === given)
    if (name === undefined || url === undefined) {
      throw new Problem(`${show(word)} is not NAME=URL; names are ${DOWNLOADS.join(', ')}`)
    }
    if (!/\{version\}/.test(word)) throw new Problem(`${show(word)} does not say where the {version} goes`)
    urls[name] = url
  }
  return urls
}
