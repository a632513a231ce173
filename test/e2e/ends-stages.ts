/** How a job is brought to each stage of its start, and how it is known that it has come there. */
import { createServer, type Socket } from 'node:net'
import { recordName } from '../../src/plan.ts'
import { kindPath, startReleasePage } from '../release-page.ts'
import type { Stage } from './ends-table.ts'
import type { EngineEvent, Matches, Watch } from './events.ts'
import { names, until } from './lab.ts'
import { labInputs } from './life.ts'
import type { Ground } from './place.ts'

/** How long a stage may take to be reached, in milliseconds. */
const REACH_LIMIT = 180_000

/** A stage of a cluster's start: what a job is given to come there, and how it is known that it has. */
export interface Situation {
  readonly options: Readonly<Record<string, string>>
  readonly env: Readonly<Record<string, string>>
  /** What the log says when it is there; undefined where something else tells. */
  readonly line: RegExp | undefined
  /** Whether it is there; undefined where the log tells. */
  readonly reached: Promise<unknown> | undefined
  release(): Promise<void>
}

/**
 * What brings a job to a stage.
 *
 * @param given.gateway an address of this machine that the engine and the hosts reach
 * @param cluster the job's
 * @param cache gives a new and empty folder for tools, by the name of a variable that makes the host use it
 */
export async function situation(
  { ground, gateway, watch }: { readonly ground: Ground; readonly gateway: string; readonly watch: Watch },
  cluster: string,
  stage: Stage,
  cache: () => Promise<Readonly<Record<string, string>>>,
): Promise<Situation> {
  const its = (type: string, action: string): Matches => {
    const name = type === 'network' ? recordName(cluster) : `${cluster}-control-plane`
    return ({ Type, Action, Actor }: EngineEvent) =>
      Type === type && Action.includes(action) && Actor.Attributes['name'] === name
  }
  const plain = {
    ...{ env: {}, line: undefined, reached: undefined, release: async () => {} },
    options: { ...labInputs(ground), name: cluster },
  }
  switch (stage) {
    case 'before the plan': {
      const silent = await listen(gateway)
      return {
        ...plain,
        env: { DOCKER_HOST: `tcp://${gateway}:${silent.port}` },
        reached: silent.met,
        release: silent.close,
      }
    }
    case 'download': {
      const path = kindPath(names.kindVersion)
      const page = await startReleasePage({ files: { [path]: { file: names.tools.kind } }, address: gateway })
      page.fault(path, { kind: 'stall' })
      return {
        ...plain,
        options: { ...plain.options, 'download-url': `kind=${page.templates.kind}` },
        env: await cache(),
        reached: until('the download', REACH_LIMIT, async () => page.count(path) > 0 || undefined),
        release: page.close,
      }
    }
    case 'pull': {
      const silent = await listen(gateway)
      return {
        ...plain,
        options: { ...plain.options, 'node-image': `${gateway}:${silent.port}/node:v1.34.4` },
        reached: silent.met,
        release: silent.close,
      }
    }
    case 'network':
      return { ...plain, reached: watch.first(its('network', 'create')) }
    case 'nodes':
      return { ...plain, reached: watch.first(its('container', 'create')) }
    case 'kubeadm':
      return { ...plain, reached: watch.first(its('container', 'exec_start: kubeadm init')) }
    case 'preload':
      return {
        ...plain,
        options: { ...plain.options, images: names.images.web },
        reached: watch.first(its('container', 'images import')),
      }
    case 'waiting':
      return { ...plain, line: /Load images, wait until all is ready/ }
    case 'just after ready':
      // With what such a job leaves beyond the engine, in the docker CLI's configuration.
      return {
        ...plain,
        options: { ...plain.options, builder: `image=${names.images.buildkit}` },
        line: /The builder \S+ is ready after/,
      }
  }
}

/** Listens, and never answers. */
async function listen(address: string): Promise<{ port: number; met: Promise<void>; close: () => Promise<void> }> {
  const sockets = new Set<Socket>()
  let meet = (): void => {}
  const met = new Promise<void>(resolve => {
    meet = resolve
  })
  const server = createServer(socket => {
    sockets.add(socket.on('error', () => {}))
    meet()
  })
  await new Promise<void>(resolve => server.listen(0, address, resolve))
  const { port } = server.address() as { port: number }
  return {
    ...{ port, met },
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
