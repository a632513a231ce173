import type { Buildx } from '../builder/buildx.ts'
import type { Program } from '../cluster/program.ts'
import type { Docker } from '../engine/docker.ts'
import type { Heed } from '../engine/preflight.ts'
import type { Archive } from '../images/archive.ts'
import type { NodeArchive } from '../images/node-archive.ts'
import type { KindConfig } from '../kind-config.ts'
import type { Options } from '../options.ts'
import type { Plan } from '../plan.ts'
import type { Mirror } from '../registry-mirrors.ts'
import type { World } from '../world.ts'

/** One use of the program on its way through pre: what was asked for, where it happens, and what will be made. */
export interface Use {
  readonly world: World
  readonly options: Options
  readonly docker: Docker
  readonly kind: Program
  readonly preflight: Heed
  readonly plan: Plan
  readonly reach: Reach
  /** Undefined where the node image is no archive. */
  readonly nodeArchive: NodeArchive | undefined
  /** Undefined where no builder is asked for. */
  readonly buildx: Buildx | undefined
  /** Where nodes look for images before they ask a registry itself. */
  readonly mirrors: readonly Mirror[]
  /** The references of the images to load, each with the name by which the engine has it, when the engine has all; rejects as soon as one cannot be pulled. */
  readonly images: Promise<ReadonlyMap<string, string>>
  /** Those that come as archives. */
  readonly archives: readonly Archive[]
  /** Resolves when what other jobs left on the engine is removed, or was given up on. Never rejects. */
  readonly tidied: Promise<void>
}

/** How the step may get to what the engine publishes. */
export interface Reach {
  /** The names and addresses to try. */
  readonly names: readonly string[]
  /** The engine's address to publish on. */
  readonly listenAddress: string
  readonly configFor: (listenAddress: string) => KindConfig
}

/** How the parts below a story are told of the log and of a cancel. */
export function logOf({ host, signal, timeline }: World) {
  return { signal, timeline, info: host.info, debug: host.debug, warning: host.warning }
}

/** Where programs are downloaded to, and for which machine. */
export function toolsOf(world: World) {
  return {
    runner: world.run,
    log: logOf(world),
    now: world.now,
    platform: { os: process.platform, arch: process.arch },
    cacheFolder: world.host.env['RUNNER_TOOL_CACHE'],
    folder: world.host.downloads,
  }
}
