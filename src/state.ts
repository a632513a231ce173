import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Problem } from './lib/problem.ts'
import type { ProcessIdentity } from './lib/process.ts'
import type { Plan } from './plan.ts'

/** What post needs to know of a use: its plan and how far pre came. */
export interface State {
  readonly plan: Plan
  /** `making` until pre has done all; a cancelled or failed pre says so. */
  readonly stage: 'making' | 'ready' | 'failed' | 'cancelled'
  /** True from before the step's container joined the cluster's network. */
  readonly joined?: boolean
  /** The ids of its nodes, from when they are made on. */
  readonly nodes?: readonly string[]
  /** The process that runs pre, while it runs. */
  readonly pre?: ProcessIdentity
}

const file = (folder: string): string => `${folder}/state.json`

/** Writes a use's state, whole or not at all: 0600 in a 0700 folder. */
export function saveState(state: State): void {
  const { folder } = state.plan
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  writeFileSync(`${file(folder)}.new`, JSON.stringify(state), { mode: 0o600 })
  renameSync(`${file(folder)}.new`, file(folder))
}

/** Changes a use's state when pre is through, well or not. */
export function updateState(folder: string, end: Pick<State, 'stage'>): void {
  const state = loadState(folder)
  if (state === undefined) return
  const { pre: _, ...rest } = state
  saveState({ ...rest, ...end })
}

/** Reads the state of the use that has this folder; undefined where there is none (pre never began, or post is through). */
export function loadState(folder: string): State | undefined {
  try {
    return JSON.parse(readFileSync(file(folder), 'utf8')) as State
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new Problem(
        `${file(folder)} is damaged, so what it was for is not known; look with docker ps, then remove ${folder}`,
      )
    }
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/**
 * When the state in a use's folder was last written, in milliseconds since 1970; undefined where there is none. A job's folder has
 * files beside those of its uses, and statSync of Node 20 throws for what would be below a file.
 */
export function stateChanged(folder: string): number | undefined {
  try {
    return statSync(file(folder)).mtimeMs
  } catch {
    return undefined
  }
}

/** The states of all uses in a job's folder, the latest first; what cannot be read is left out. None where it is not there. */
export function loadStates(folder: string): readonly State[] {
  const names = statSync(folder, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(folder) : []
  return names
    .flatMap(use => {
      const changed = stateChanged(join(folder, use))
      return changed === undefined ? [] : [{ use, changed }]
    })
    .sort((a, b) => b.changed - a.changed)
    .flatMap(({ use }) => {
      try {
        return loadState(join(folder, use)) ?? []
      } catch {
        return []
      }
    })
}

/** Removes a use's folder with all that is in it. */
export function forgetState(folder: string): void {
  rmSync(folder, { recursive: true, force: true })
}
