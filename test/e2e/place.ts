/** Places as CI systems make them: a step in a container, and an engine in another, on one network or closer together. */
import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Argv } from '../../src/lib/run.ts'
import { kindPath, kubectlPath, type ReleasePage, type Served, startReleasePage } from '../release-page.ts'
import { type DockerCli, docker, dockerCli, names, runner, until } from './lab.ts'

const ROOT = join(import.meta.dirname, '../..')

/** Where the runner puts an action in a container job. */
export const ACTION = '/__w/_actions/owner/kind-in-dind/v1'

/** How long the sidecar may take until its engine answers, in milliseconds. */
const START_LIMIT = 60_000

/** How long one command in the step may take, in milliseconds: four clusters at once on two cores are the slowest. */
const COMMAND_LIMIT = 420_000

/** A command in the step, as it ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  /** stdout and stderr as a log shows them, for people and for messages that may be on either. */
  readonly log: string
  /** Milliseconds. */
  readonly took: number
}

export interface CommandOptions {
  readonly env?: Readonly<Record<string, string>>
  /** A name or an id; root by default. */
  readonly user?: string
  /** Written to stdin. */
  readonly input?: string
  readonly onLine?: (line: string) => void
}

/** Where a job's steps run. */
export interface Step {
  /** What a step's environment says of the engine and of the place. */
  readonly variables: Readonly<Record<string, string>>
  /** Runs a command in the step. */
  run(argv: readonly string[], options?: CommandOptions): Promise<Ended>
}

/** An engine in a container. */
export interface Sidecar {
  /** Its container on the lab's engine. */
  readonly name: string
  /** The docker CLI at its engine, from within. */
  readonly docker: DockerCli
  /** The volume with the client's certificates, where it answers over TLS. */
  readonly certificates: string | undefined
}

export interface SidecarOptions {
  /** Its names on the network; `docker` by default. */
  readonly aliases?: readonly string[]
  readonly image?: string
  /** Whether it answers over TLS on 2376 or plain on 2375. */
  readonly tls: boolean
  /** What its engine has from the beginning. */
  readonly images: readonly string[]
  /** More arguments of docker run. */
  readonly flags?: readonly string[]
  /** More arguments of dockerd. */
  readonly arguments?: readonly string[]
}

export interface StepOptions {
  readonly variables: Readonly<Record<string, string>>
  /** Whose client certificates it has. */
  readonly certificates?: Sidecar
  /** More arguments of docker run. */
  readonly flags?: readonly string[]
  /** Its network; the ground's by default. */
  readonly network?: string
  /** Whose engine runs it; the lab's by default. It has the step image then. */
  readonly engine?: Sidecar
}

/** What places are made on: a network and a release page. All that is made on it goes with it. */
export interface Ground {
  /** The release page of kind and kubectl that steps reach. */
  readonly page: ReleasePage
  /** Makes a volume. */
  createVolume(name: string): Promise<string>
  /** Runs a container on the network; takes docker run's arguments. */
  startContainer(name: string, ...args: readonly string[]): Promise<string>
  startSidecar(name: string, options: SidecarOptions): Promise<Sidecar>
  /** Starts a step with the action in it. */
  startStep(name: string, options: StepOptions): Promise<Step>
  /** Removes all of it. */
  remove(): Promise<void>
}

/** A step and its sidecar. */
export interface Place extends Step {
  readonly page: ReleasePage
  /** The sidecar's container on the lab's engine. */
  readonly sidecar: string
  /** The docker CLI at the sidecar's engine, from within the sidecar. */
  readonly docker: DockerCli
  /** Removes all of it. */
  remove(): Promise<void>
}

/**
 * Makes a place with the action in it.
 *
 * @param given.tls whether the engine answers over TLS on 2376 or plain on 2375
 * @param given.images what the sidecar's engine has from the beginning
 * @param given.files more of what the release page has
 */
export async function createPlace(given: {
  readonly tls: boolean
  readonly images: readonly string[]
  readonly files?: Readonly<Record<string, Served>>
}): Promise<Place> {
  const ground = await createGround(given)
  try {
    const sidecar = await ground.startSidecar('docker', given)
    const step = await ground.startStep('step', {
      variables: engineVariables('docker', given.tls),
      certificates: sidecar,
    })
    return { ...step, page: ground.page, sidecar: sidecar.name, docker: sidecar.docker, remove: ground.remove }
  } catch (error) {
    await ground.remove().catch(() => {})
    throw error
  }
}

/** The variables by which a step finds the engine at a name. */
export function engineVariables(name: string, tls: boolean): Readonly<Record<string, string>> {
  return tls
    ? { DOCKER_HOST: `tcp://${name}:2376`, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: '/certs/client' }
    : { DOCKER_HOST: `tcp://${name}:2375` }
}

/** @param given.files more of what the release page has */
export async function createGround(given: { readonly files?: Readonly<Record<string, Served>> } = {}): Promise<Ground> {
  if (!existsSync(join(ROOT, 'dist/main.js'))) throw new Error('there is no dist/ to run: npm run build makes it')
  const ground = `place-${randomBytes(4).toString('hex')}`
  const containers: string[] = []
  const volumes: string[] = []
  const volume = async (name: string): Promise<string> => {
    volumes.push(`${ground}-${name}`)
    return (await docker('volume', 'create', `${ground}-${name}`)).trim()
  }
  /** @param args with the network */
  const container = async (name: string, args: readonly string[]): Promise<string> => {
    containers.push(`${ground}-${name}`)
    await docker('run', '--detach', '--name', `${ground}-${name}`, ...args)
    return `${ground}-${name}`
  }

  await docker('network', 'create', ground)
  let page: ReleasePage
  try {
    page = await startReleasePage({
      files: {
        [kindPath(names.kindVersion)]: { file: names.tools.kind },
        [kubectlPath(names.kubernetesVersion)]: { file: names.tools.kubectl },
        ...given.files,
      },
      // The network's own address on this machine, which steps reach.
      address: (await docker('network', 'inspect', ground, '--format', '{{(index .IPAM.Config 0).Gateway}}')).trim(),
    })
  } catch (error) {
    await docker('network', 'rm', ground).catch(() => {})
    throw error
  }

  return {
    page,
    createVolume: volume,
    startContainer: (name, ...args) => container(name, ['--network', ground, ...args]),

    startSidecar: async (name, { aliases = ['docker'], image = names.images.dind, tls, images, ...more }) => {
      const certificates = tls ? await volume(`${name}-certificates`) : undefined
      const started = await container(name, [
        ...['--privileged', '--network', ground, ...aliases.flatMap(alias => ['--network-alias', alias])],
        ...(certificates === undefined
          ? ['--env', 'DOCKER_TLS_CERTDIR=']
          : ['--env', 'DOCKER_TLS_CERTDIR=/certs', '--volume', `${certificates}:/certs/client`]),
        ...[...(more.flags ?? []), image, ...(more.arguments ?? [])],
      ])
      const sidecar = { name: started, docker: dockerIn(started), certificates }
      await until(`the engine in ${started}`, START_LIMIT, () =>
        sidecar.docker('version', '--format', '{{.Server.Version}}'),
      )
      await provide(started, images)
      return sidecar
    },

    startStep: async (name, { variables, certificates, flags = [], network = ground, engine }) => {
      const args = [
        ...['--network', network, ...flags, '--entrypoint', 'sleep'],
        ...(certificates?.certificates ? ['--volume', `${certificates.certificates}:/certs/client:ro`] : []),
        ...[names.images.step, 'infinity'],
      ]
      if (engine === undefined) await container(name, args)
      else await engine.docker('run', '--detach', '--name', `${ground}-${name}`, ...args)
      const inside = (flags: readonly string[], argv: readonly string[]): Argv => [
        names.tools.docker,
        ...(engine === undefined ? [] : ['exec', '--interactive', engine.name, 'docker']),
        ...['exec', '--interactive', ...flags, `${ground}-${name}`, ...argv],
      ]
      const made = await runner.try(inside([], ['mkdir', '-p', ACTION]))
      if (made.code !== 0) throw new Error(made.stderr)
      // Not by docker cp: the file system may be read-only but for its volumes.
      await pipe(
        ['tar', '--create', `--directory=${ROOT}`, 'dist', 'action.yml', 'package.json'],
        inside([], ['tar', '--extract', '--no-same-owner', `--directory=${ACTION}`]),
      )
      return { variables, run: (argv, options = {}) => runIn(inside, argv, options) }
    },

    remove: async () => {
      await page.close()
      // Those that came last may use what came first: a network, a volume.
      if (containers.length > 0) await docker('rm', '--force', '--volumes', ...containers.toReversed())
      if (volumes.length > 0) await docker('volume', 'rm', '--force', ...volumes)
      await docker('network', 'rm', ground)
    },
  }
}

function dockerIn(sidecar: string): DockerCli {
  return dockerCli(names.tools.docker, 'exec', sidecar, 'docker')
}

/** What a command in a step prints that must succeed: it makes ready what a test is about. */
export async function prepare(step: Step, script: string): Promise<string> {
  const { code, stdout, log } = await step.run(['bash', '-e', '-c', script])
  if (code !== 0) throw new Error(log)
  return stdout.trim()
}

/** Gives images to the sidecar's engine: from the mirror, which takes a third of the time, else from the lab's engine. */
async function provide(sidecar: string, images: readonly string[]): Promise<void> {
  if (images.length === 0) return
  if (names.mirror !== '') {
    await Promise.all(images.map(image => dockerIn(sidecar)('pull', '--quiet', image)))
    return
  }
  await pipe(
    [names.tools.docker, 'save', ...images],
    [names.tools.docker, 'exec', '--interactive', sidecar, 'docker', 'load'],
  )
}

/** Lets one command read what another prints. */
async function pipe(from: Argv, to: Argv): Promise<void> {
  const [source, sink] = [runner.start(from), runner.start(to)]
  sink.stdout.resume()
  await pipeline(source.stdout, sink.stdin)
  await Promise.all([source.ended, sink.ended])
}

/** @param inside the command that runs another one in the step, with flags of docker exec */
async function runIn(
  inside: (flags: readonly string[], argv: readonly string[]) => Argv,
  argv: readonly string[],
  options: CommandOptions,
): Promise<Ended> {
  const { env = {}, user = 'root', input, onLine } = options
  const lines: string[] = []
  const started = performance.now()
  const variables = Object.entries(env).flatMap(([name, value]) => ['--env', `${name}=${value}`])
  const { code, stdout } = await runner.try(inside(['--user', user, ...variables], argv), {
    ...(input === undefined ? {} : { input }),
    timeout: COMMAND_LIMIT,
    onLine: line => {
      lines.push(line)
      onLine?.(line)
    },
  })
  return { code, stdout, log: lines.join('\n'), took: performance.now() - started }
}
