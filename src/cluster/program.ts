/** What an installation wants, what it needs of the world for it, and what it gives. */
import type { Runner } from '../lib/run.ts'
import type { DownloadName } from '../options.ts'
import type { Patience } from './download.ts'
import type { Platform } from './release.ts'

/** What an installation needs of the world. */
export interface Surroundings {
  readonly runner: Runner
  readonly log: {
    info(message: string): void
    debug(message: string): void
    warning(message: string): void
  }
  /** Milliseconds. */
  readonly now: () => number
  /** The step's `process.platform` and `process.arch`. */
  readonly platform: { readonly os: string; readonly arch: string }
  /** The value of RUNNER_TOOL_CACHE. Where it is undefined or cannot be written, `folder` takes its place. */
  readonly cacheFolder: string | undefined
  /** The job's own folder. */
  readonly folder: string
  /** How long it may take; `PATIENCE` where it is absent. */
  readonly patience?: Patience
}

export interface Program {
  /** What to run: a file, or a bare name where it is on PATH already. */
  readonly path: string
  /** Such as v0.33.0. */
  readonly version: string
  /** The folder to put on PATH; undefined where the program is there already. */
  readonly folder: string | undefined
}

/** A program of a release page. */
export interface Wanted {
  readonly name: Exclude<DownloadName, 'node'>
  /** The option that chose the version. */
  readonly option: string
  readonly version: string
  readonly platform: Platform
  readonly template: string
  readonly checksumFile: string
  /** Pinned by the user; else the page's checksum file has it. */
  readonly sha256: string | undefined
}

/** Such as `kind v0.33.0`. */
export function title(wanted: Wanted): string {
  return `${wanted.name} ${wanted.version}`
}
