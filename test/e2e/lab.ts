/** The lab as tests see it: the names of what is there, and its engine. */
import { accessSync, constants, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Argv, createRunner } from '../../src/lib/run.ts'

export interface Names {
  /** As DOCKER_HOST names it. */
  readonly engine: string
  /** A registry that engines in containers take for the public one; empty where they reach that. */
  readonly mirror: string
  readonly kubernetesVersion: string
  readonly kindVersion: string
  readonly images: Readonly<
    Record<
      | 'node'
      | 'nodeContainerd2'
      | 'dind'
      | 'dindNewest'
      | 'step'
      | 'registry'
      | 'buildkit'
      | 'buildkitRootless'
      | 'web',
      string
    >
  >
  /** Absolute paths; a bare name where it is not on PATH. */
  readonly tools: Readonly<
    Record<'kind' | 'kubectl' | 'docker' | 'buildx' | 'compose' | 'buildkiteAgent' | 'act' | 'node', string>
  >
}

/** What this lab has: see test/lab/README.md. */
export const names: Names = readNames()

/** Runs the test's own commands. */
export const runner = createRunner({
  env: {
    ...process.env,
    DOCKER_HOST: names.engine,
    DOCKER_CONTEXT: undefined,
    DOCKER_TLS_VERIFY: undefined,
    DOCKER_CERT_PATH: undefined,
  },
})

/** A docker CLI at one engine: takes arguments without the leading `docker`, gives stdout, fails as `Runner.run` does. */
export type DockerCli = (...args: string[]) => Promise<string>

/** How long one docker command may take, in milliseconds: a pull of the node image is the longest. */
const LIMIT = 180_000

/** @param program what comes before docker's arguments */
export function dockerCli(...program: Argv): DockerCli {
  return async (...args) => (await runner.run([...program, ...args], { timeout: LIMIT })).stdout
}

/** The docker CLI at the lab's own engine. */
export const docker = dockerCli(names.tools.docker)

/** The containers, networks and volumes of an engine, running or not: `volume act-toolcache` and its like, sorted. */
export async function listing(of: DockerCli = docker): Promise<readonly string[]> {
  const found = await Promise.all([
    of('ps', '--all', '--format', 'container {{.Names}}'),
    of('network', 'ls', '--format', 'network {{.Name}}'),
    of('volume', 'ls', '--format', 'volume {{.Name}}'),
  ])
  return found
    .flatMap(text => text.split('\n'))
    .filter(line => line !== '')
    .sort()
}

/** How long to leave alone what is being waited for, in milliseconds. */
const PAUSE = 100

/**
 * Looks again and again until something is there.
 *
 * @param what to name it where it does not come
 * @param limit milliseconds
 * @param look gives undefined, or fails, as long as it is not there
 * @throws Error at the limit, with what the last look met
 */
export async function until<T>(what: string, limit: number, look: () => Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + limit
  for (;;) {
    const found = await look().catch((error: unknown) =>
      performance.now() > deadline ? Promise.reject(error) : undefined,
    )
    if (found !== undefined) return found
    if (performance.now() > deadline) throw new Error(`${what}: not within ${limit / 1000} s`)
    await sleep(PAUSE)
  }
}

function readNames(): Names {
  const cache = process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache')
  const lab = process.env['KIND_IN_DIND_LAB'] || join(cache, 'kind-in-dind-lab')
  const file = process.env['KIND_IN_DIND_NAMES'] || join(lab, 'names.json')
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch {
    throw new Error(`there is no lab (no ${file}): test/lab/up brings it up`)
  }
  const read = JSON.parse(text) as Names
  const tools = Object.entries(read.tools).map(([name, program]) => [name, onPath(program) ?? program])
  return { ...read, tools: Object.fromEntries(tools) as Names['tools'] }
}

/** The path of a program that is named without one. */
function onPath(program: string): string | undefined {
  if (program.includes('/')) return program
  const paths = (process.env['PATH'] ?? '').split(delimiter).map(folder => join(folder, program))
  return paths.find(path => {
    try {
      accessSync(path, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}
