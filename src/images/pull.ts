import { missingHelper } from '../engine/credentials.ts'
import { type Docker, EngineLate } from '../engine/docker.ts'
import type { Surroundings } from '../engine/find.ts'
import { pull } from '../engine/images.ts'
import { formatDuration } from '../lib/duration.ts'
import { Problem } from '../lib/problem.ts'
import { whatItSaid } from '../lib/run.ts'
import { withoutSecrets } from '../lib/scrub.ts'
import type { Engine } from '../plan.ts'
import { type MirrorWorld, pullFromMirror } from './pull-mirror.ts'
import { parseReference, withTag } from './reference.ts'

/** How long a pull may take, in milliseconds: a node image has 1 GB. */
const LIMIT = 20 * 60_000

/** How long to leave a registry alone before the second and the third try, in milliseconds. */
const PAUSES = [2000, 8000]

/** An image is not to be had. Nodes have no part in it, whatever they do at that time. */
export class NoImage extends Problem {}

/** What a pull is told of the world. */
export interface PullWorld extends MirrorWorld {
  readonly engine: Pick<Engine, 'address'>
  /** Where docker's config is, and the credential helpers that it names. */
  readonly around: Pick<Surroundings, 'env' | 'readFile' | 'exists'>
  /** The other engines in reach that have an image. */
  readonly elsewhere: (reference: string) => Promise<readonly string[]>
  /** Waits milliseconds. */
  readonly sleep: (ms: number) => Promise<unknown>
}

/**
 * Lets the engine pull an image, with the job's credentials as the docker CLI finds them. The one way by which this program pulls.
 *
 * @param option what the image is for, named in front of a failure: `images`
 * @returns the name by which the engine has it: another one where a mirror gave what a digest names, see `pullFromMirror`
 * @throws NoImage that says why, and what to do: at once where another try cannot help, else after the third
 */
export async function pullImage(docker: Docker, reference: string, option: string, world: PullWorld): Promise<string> {
  const started = performance.now()
  world.info(`Pulling ${reference}`)
  const got = await pullFromMirror(docker, parseReference(reference), world, LIMIT)
  for (let tries = 1; got === undefined; tries++) {
    const pulled = await docker.try(pull(reference), { timeout: LIMIT }).catch((error: unknown) => {
      if (!(error instanceof EngineLate)) throw error
      throw new NoImage(
        `${option}: the engine did not pull ${reference} within ${formatDuration(LIMIT)}; look whether it reaches the registry, and how fast, or name a mirror (registry-mirrors)`,
      )
    })
    if (pulled.code === 0) break
    const why = reason(pulled.stderr, reference)
    const said = withoutSecrets(whatItSaid(pulled, 1).replace(/^Error response from daemon: /, ''))
    const pause = PAUSES[tries - 1]
    if (!PASSING.includes(why) || pause === undefined)
      throw await refusal(reference, option, { why, said, tries }, world)
    world.info(`${reference}: ${said}; trying again in ${formatDuration(pause)}`)
    await world.sleep(pause)
  }
  world.info(`Pulled ${reference} in ${formatDuration(performance.now() - started)}`)
  return got ?? reference
}

/** Why a pull failed. */
export type Reason = 'rate limit' | 'trouble' | 'denied' | 'absent' | 'platform' | 'plain http' | 'other'

/** What may be over at another try. */
const PASSING: readonly Reason[] = ['rate limit', 'trouble']

/**
 * The words of engines with the classic store and with containerd's, which hand on those of the registry and of Go's HTTP client.
 * The first that fits counts.
 */
const WORDS: readonly (readonly [Reason, RegExp])[] = [
  ['rate limit', /toomanyrequests|too many requests|\brate limit|status(?: code)?:? 429\b/i],
  ['plain http', /server gave HTTP response to HTTPS client/],
  ['platform', /no matching manifest for|no match for platform|does not (?:match|provide) the specified platform/i],
  [
    'denied',
    /\bdenied\b|unauthorized|no basic auth credentials|authorization failed|authentication required|\b403 Forbidden/i,
  ],
  ['absent', /manifest unknown|name unknown|repository .*not known|: not found\b|not found: |\b404 Not Found/i],
  [
    'trouble',
    /\b5\d\d (?:Internal|Bad Gateway|Service|Gateway|<)|status(?: code)?:? 5\d\d\b|time-?out|timed out|deadline exceeded|connection reset|broken pipe|\bEOF\b|server misbehaving|temporary failure|unavailable/i,
  ],
]

/** @param stderr of docker pull; a repository's name in it is not taken for a reason */
export function reason(stderr: string, reference: string): Reason {
  const { path } = parseReference(reference)
  const said = path.startsWith('library/') ? stderr : stderr.replaceAll(path, '')
  return WORDS.find(([, words]) => words.test(said))?.[0] ?? 'other'
}

async function refusal(
  reference: string,
  option: string,
  failure: { readonly why: Reason; readonly said: string; readonly tries: number },
  world: PullWorld,
): Promise<NoImage> {
  const { registry } = parseReference(reference)
  const { why, said, tries } = failure
  const mayLackLogin = why === 'denied' || why === 'rate limit'
  const helper = mayLackLogin ? missingHelper(registry, world.around) : undefined
  const login =
    helper === undefined
      ? `log in to ${registry} (docker login in a step before this one, or DOCKER_CONFIG)`
      : `put the credential helper ${helper.program}, which ${helper.config} names for ${registry}, on PATH: it is not there`
  const build = `build it on this engine (${world.engine.address}) in a step before this one`
  const advice: Readonly<Record<Reason, string>> = {
    'rate limit': `that is a rate limit: ${login}, or name a mirror (registry-mirrors)`,
    trouble: `it is the engine, not this step, that must reach ${registry}`,
    denied: `${login}, or ${build}`,
    absent: build,
    platform: 'name an image for the platform of the engine, or build one',
    'plain http': `the registry speaks plain HTTP: name it among the engine's insecure-registries`,
    other: `it is the engine, not this step, that must reach the registry: name an image that it reaches, or load one into it before (docker load)`,
  }
  const times = tries > 1 ? ` in ${tries} tries` : ''
  const elsewhere = await hasElsewhere(reference, world)
  return new NoImage(`${option}: the engine cannot pull ${reference}${times}: ${said}; ${advice[why]}${elsewhere}`)
}

/** Where else an image is that the engine lacks, as the end of a sentence; empty where nobody has it. */
export async function hasElsewhere(reference: string, { engine, elsewhere }: PullWorld): Promise<string> {
  const others = await elsewhere(withTag(parseReference(reference)))
  if (others.length === 0) return ''
  return `; another engine has it: ${others.join(', ')}, while the cluster is on ${engine.address}: use one engine for both (docker-host)`
}
