/** docker buildx: its arguments, what it says, and the images that its kubernetes driver runs. */
import { type Docker, engineEnv } from '../engine/docker.ts'
import type { Argv, Result, Runner, Running, RunOptions } from '../lib/run.ts'
import type { BuilderOptions } from '../options.ts'
import type { Engine } from '../plan.ts'

/** buildx at one engine. Takes arguments without the leading `docker buildx`. */
export interface Buildx {
  try(args: readonly string[], options?: RunOptions): Promise<Result>
  start(args: readonly string[], options: Pick<RunOptions, 'env'> & { readonly timeout: number }): Running
}

/** How long a command of buildx may take that waits for nobody, in milliseconds. */
const LIMIT = 30_000

/**
 * @param program the standalone program, which takes the same arguments; undefined for the docker CLI's own plugin
 * @param engine none where a command needs no engine
 */
export function buildxAt(
  program: string | undefined,
  engine: Pick<Engine, 'env' | 'aroundProxy'> | undefined,
  runner: Runner,
): Buildx {
  const argv = (args: readonly string[]): Argv =>
    program === undefined ? ['docker', 'buildx', ...args] : [program, ...args]
  const own = engine === undefined ? {} : engineEnv(engine)
  return {
    try: (args, options = {}) =>
      runner.try(argv(args), { timeout: LIMIT, ...options, env: { ...own, ...options.env } }),
    start: (args, { env, timeout }) => runner.start(argv(args), { timeout, env: { ...own, ...env } }),
  }
}

/** The name of the Deployment, and the start of its pods' names: `docker buildx inspect` shows them as nodes. */
export const DEPLOYMENT = 'buildkit'

/**
 * Makes a builder. Its kubeconfig is the one that KUBECONFIG names then (driver/kubernetes in buildx' source).
 *
 * @param given.configFile a buildkitd.toml, with the flag by which this buildx takes it
 * @param given.boot also makes the pods, and waits for them
 */
export const createBuilder = (given: {
  readonly name: string
  readonly options: Pick<BuilderOptions, 'driver' | 'flags'>
  readonly configFile?: { readonly flag: ConfigFlag; readonly path: string } | undefined
  readonly boot: boolean
}): string[] => [
  'create',
  '--driver=kubernetes',
  `--name=${given.name}`,
  `--node=${DEPLOYMENT}`,
  ...Object.entries(given.options.driver).map(([key, value]) => `--driver-opt=${csvField(`${key}=${value}`)}`),
  ...(given.options.flags === undefined ? [] : [`--buildkitd-flags=${given.options.flags}`]),
  ...(given.configFile === undefined ? [] : [`${given.configFile.flag}=${given.configFile.path}`]),
  ...(given.boot ? ['--bootstrap'] : []),
]

/** buildx reads a driver option as a line of CSV: a comma or a quote in it needs quotes around it. */
function csvField(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

export type ConfigFlag = '--buildkitd-config' | '--config'

export const createHelp: readonly string[] = ['create', '--help']

/** The flag by which this buildx takes a buildkitd.toml: it has another name since 0.13. */
export function configFlag(help: string): ConfigFlag {
  return help.includes('--buildkitd-config') ? '--buildkitd-config' : '--config'
}

/** Forgets a builder here and leaves its pods: it asks no API server, which may be gone. */
export const forgetBuilder = (name: string): string[] => ['rm', '--keep-daemon', '--force', name]

/** What buildx says is wrong, without its frame: the last line that it calls an error. */
export function errorIn(stderr: string): string {
  const lines = stderr
    .split('\n')
    .map(line => line.trim())
    .filter(line => line !== '')
  const said = lines.filter(line => /^error:/i.test(line)).at(-1) ?? lines.at(-1) ?? 'it does not say why'
  return said.replace(/^error:\s*/i, '').replace(/^failed to initialize builder \S+ \(\S+\): /, '')
}

/** What the driver runs unless its options say otherwise (driver/bkimage in buildx' source). */
const IMAGE = 'moby/buildkit:buildx-stable-1'
const ROOTLESS_IMAGE = 'moby/buildkit:buildx-stable-1-rootless'
const QEMU_IMAGE = 'tonistiigi/binfmt:latest'

/** The images that the builder's pods run, as the driver chooses them: BuildKit's, and one that installs emulators where it is to. */
export function builderImages({ driver }: Pick<BuilderOptions, 'driver'>): string[] {
  return [
    driver['image'] || (isTrue(driver['rootless']) ? ROOTLESS_IMAGE : IMAGE),
    ...(isTrue(driver['qemu.install']) ? [driver['qemu.image'] || QEMU_IMAGE] : []),
  ]
}

/** As Go's strconv.ParseBool reads it. */
export function isTrue(word: string | undefined): boolean {
  return ['1', 't', 'T', 'TRUE', 'true', 'True'].includes(word ?? '')
}

/** Whether the docker CLI has the plugin. @throws Problem where there is no docker CLI */
export async function hasPlugin(docker: Docker): Promise<boolean> {
  return (await docker.try(['buildx', 'version'], { timeout: LIMIT })).code === 0
}
