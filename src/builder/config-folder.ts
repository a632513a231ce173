/** buildx' folder of configuration: the user's own builders are in it, and what we leave in it must go again. */
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmdirSync, rmSync, symlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Environment } from '../host/host.ts'
import { messageOf } from '../lib/problem.ts'

/** Where the docker CLI keeps its configuration and looks for plugins. */
export function dockerFolder(env: Environment): string {
  return env['DOCKER_CONFIG'] || join(env['HOME'] || homedir(), '.docker')
}

/** Where buildx keeps its own (util/confutil in its source). */
export function buildxFolder(env: Environment): string {
  return env['BUILDX_CONFIG'] || join(dockerFolder(env), 'buildx')
}

/** The folders and files that any command of buildx makes, beside those that carry a builder's name. */
const FOLDERS = ['instances', 'defaults', 'activity', 'refs']
const LOCK = '.lock'
const FILES = [LOCK, '.buildNodeID']

/** The buildkitd.toml that buildx gives every builder made without one, where the user has it. */
export function defaultConfig(folder: string): string | undefined {
  const file = join(folder, 'buildkitd.default.toml')
  return existsSync(file) ? readFileSync(file, 'utf8') : undefined
}

/** Where the docker CLI looks for the plugin first. */
export function pluginLink(env: Environment): string {
  return join(dockerFolder(env), 'cli-plugins', 'docker-buildx')
}

/** What a builder may make in these folders and is not there yet: a folder stands before what is in it. */
export function missingPaths(env: Environment): string[] {
  const folder = buildxFolder(env)
  const plugins = dirname(pluginLink(env))
  const paths = [
    dirname(plugins),
    plugins,
    dirname(folder),
    folder,
    ...[...FOLDERS, ...FILES].map(name => join(folder, name)),
  ]
  return [...new Set(paths)].filter(path => !existsSync(path))
}

/** A buildx of this program's that an earlier or another job has linked as the docker CLI's plugin; undefined where none is. */
export function linkedBuildx(env: Environment): { readonly program: string; readonly link: string } | undefined {
  const link = pluginLink(env)
  try {
    const program = readlinkSync(link)
    return /\/kind-in-dind.*\/buildx$/.test(program) ? { program, link } : undefined
  } catch {
    return undefined
  }
}

/** Whether a builder of this program's is in buildx' configuration. */
export function hasBuilders(configFolder: string): boolean {
  const folder = join(configFolder, 'instances')
  return existsSync(folder) && readdirSync(folder).some(name => name.startsWith('kind-in-dind-'))
}

/**
 * Links a program into the docker CLI's plugins, where there is none of its name.
 *
 * @returns why that cannot be, undefined where it is done, or was before
 */
export function linkPlugin({ program, link }: { readonly program: string; readonly link: string }): string | undefined {
  try {
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(program, link)
    return undefined
  } catch (error) {
    return isLink(link, program) ? undefined : messageOf(error)
  }
}

/** Takes away the link that `linkPlugin` made, and nothing else of that name. */
export function unlinkPlugin({ program, link }: { readonly program: string; readonly link: string }): void {
  try {
    if (isLink(link, program)) rmSync(link)
  } catch {
    // It is gone by now.
  }
}

function isLink(link: string, program: string): boolean {
  try {
    return readlinkSync(link) === program
  } catch {
    return false
  }
}

/**
 * Removes what was not there before the job: files, the lock where no builder is left for which it may be held, and folders that
 * are empty.
 *
 * @param missing as `missingPaths` found it
 */
export function removeNew(folder: string, missing: readonly string[]): void {
  const kept = holds(join(folder, 'instances')) ? [LOCK] : []
  for (const name of FILES.filter(file => !kept.includes(file))) {
    if (missing.includes(join(folder, name))) rmSync(join(folder, name), { force: true })
  }
  for (const path of missing.toReversed()) {
    try {
      rmdirSync(path)
    } catch {
      // Others have put something there, or it never was.
    }
  }
}

function holds(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).length > 0
}
