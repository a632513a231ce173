import { setTimeout as sleep } from 'node:timers/promises'
import type { Docker } from '../engine/docker.ts'
import { enginesWith } from '../engine/elsewhere.ts'
import { surroundings } from '../engine/find.ts'
import { imageArchitecture, inspectImages } from '../engine/images.ts'
import { Problem } from '../lib/problem.ts'
import { type Result, whatItSaid } from '../lib/run.ts'
import { withoutSecrets } from '../lib/scrub.ts'
import type { Timeline } from '../lib/timeline.ts'
import type { Options } from '../options.ts'
import type { Engine } from '../plan.ts'
import type { Mirror } from '../registry-mirrors.ts'
import type { World } from '../world.ts'
import { hasElsewhere, NoImage, type PullWorld, pullImage } from './pull.ts'
import { distinct, parseReference, type Reference } from './reference.ts'

/** What images are resolved with. */
export interface ResolveWorld extends PullWorld {
  readonly engine: Pick<Engine, 'address' | 'architecture'>
  readonly warning: (message: string) => void
  /** Records a stage of the work. */
  readonly span: Timeline['span']
}

/** The same, at an engine of the real world. */
export function resolvingAt(
  { engine, mirrors }: { readonly engine: Engine; readonly mirrors: readonly Mirror[] },
  { host, signal, timeline }: World,
): ResolveWorld {
  const around = surroundings(host.env)
  return {
    ...{ engine, around, mirrors },
    folder: host.downloads,
    elsewhere: reference => enginesWith(reference, engine, around),
    info: host.info,
    warning: host.warning,
    span: timeline.span,
    sleep: ms => sleep(ms, undefined, { signal }),
  }
}

/**
 * Sees that the engine has every image that is to be loaded; what it lacks it pulls.
 *
 * @returns as soon as it is known what the engine has. Pulls have begun then; `images` settles with the last, or with the first that
 *   fails. It gives the references, of those that name one image the first, each with the name by which the engine has it (see `pullImage`)
 * @throws Problem that names those that no pod could name, those for another platform, and those that may not be pulled
 */
export async function resolveImages(
  docker: Docker,
  { images: given, pull }: Pick<Options, 'images' | 'pull'>,
  world: ResolveWorld,
): Promise<{ readonly images: Promise<ReadonlyMap<string, string>> }> {
  const references = distinct(given)
  warnOfLatest(given, world)
  const found = await findImages(docker, references)
  const problems = references.flatMap(reference => refuse(reference, found.get(reference.name), world.engine))
  const lacking = references.filter(({ name }) => !found.has(name))
  if (pull === 'never' && lacking.length > 0) problems.push(await neverPulled(lacking, world))
  if (problems.length > 0) throw new Problem(problems.join('\n'))

  const images = pullAll(docker, lacking, world).then(
    pulled => new Map(references.map(({ given }) => [given, pulled.get(given) ?? given])),
  )
  // Awaited when it is needed; a failure before that must not count as unhandled.
  images.catch(() => {})
  return { images }
}

/**
 * Pulls images at once. They are looked at when all are there, in one question.
 *
 * @returns the name by which the engine has each, by reference
 */
async function pullAll(
  docker: Docker,
  references: readonly Reference[],
  world: ResolveWorld,
): Promise<ReadonlyMap<string, string>> {
  const pullEach = (some: readonly Reference[]) =>
    Promise.all(
      some.map(async reference => {
        const { given } = reference
        const name = await world.span(`Pull ${given}`, () => pullImage(docker, given, 'images', world))
        return { reference, had: parseReference(name) }
      }),
    )
  // What comes by a mirror's tag loses that again, and where it was the repository's last the engine forgets its digests, too.
  const isLater = ({ digest, registry }: Reference): boolean =>
    digest !== undefined && world.mirrors.some(({ upstream }) => upstream === registry)
  const pulled = [
    ...(await pullEach(references.filter(reference => !isLater(reference)))),
    ...(await pullEach(references.filter(isLater))),
  ]
  const found = await findImages(
    docker,
    pulled.map(({ had }) => had),
  )
  const problems = pulled.flatMap(({ reference, had }) => {
    const image = found.get(had.name)
    if (image === undefined) return [`images: the engine has no ${reference.given}, though it pulled it just now`]
    return refuse(reference, image, world.engine)
  })
  if (problems.length > 0) throw new NoImage(problems.join('\n'))
  return new Map(pulled.map(({ reference, had }) => [reference.given, had.given]))
}

/** What the engine says of an image. */
interface Found {
  readonly tags: readonly string[] | null
  readonly os: string
  readonly architecture: string
}

/** The images that the engine has, by their names. */
async function findImages(docker: Docker, references: readonly Reference[]): Promise<Map<string, Found>> {
  if (references.length === 0) return new Map()
  const asked = await docker.try(inspectImages(references.map(({ given }) => given)))
  const { code, stdout, stderr } = asked
  const absent = new Set(
    [...stderr.matchAll(/no such image:? (\S+)/gi)].map(([, name = '']) => parseReference(name).name),
  )
  const there = references.filter(({ name }) => !absent.has(name))
  const lines = stdout.split('\n').filter(line => line !== '')
  if (lines.length !== there.length || (code !== 0 && absent.size === 0)) {
    throw new Problem(`images: the engine does not say which of them it has: ${withoutSecrets(whatItSaid(asked, 1))}`)
  }
  return new Map(there.map(({ name }, index) => [name, JSON.parse(lines[index] ?? '') as Found]))
}

/** What is wrong with an image that the engine has. */
function refuse({ given }: Reference, found: Found | undefined, engine: Pick<Engine, 'architecture'>): string[] {
  if (found === undefined) return []
  if (isId(given) && !found.tags?.some(tag => tag.startsWith(`${given}:`))) {
    return [`images: ${given} is an id, by which no pod can name an image; tag it (docker tag) and name the tag`]
  }
  // containerd's store does not fetch a layer that another image of the engine has unpacked, packed otherwise, and cannot save it then.
  if (found.os === '') {
    return [
      `images: the engine has ${given} without the content of its layers, which it took from another image, and cannot give it to nodes; remove that image and pull this one again, or build it on this engine`,
    ]
  }
  const platform = `${found.os}/${found.architecture}`
  const own = `linux/${engine.architecture}`
  if (platform === own) return []
  return [
    `images: ${given} is for ${platform}, and the nodes on this engine are ${own}; build or pull it for ${own} (--platform)`,
  ]
}

/** Whether a reference may be an id, or the start of one. */
function isId(reference: string): boolean {
  return /^[0-9a-f]{6,64}$/.test(reference)
}

async function neverPulled(lacking: readonly Reference[], world: ResolveWorld): Promise<string> {
  const names = await Promise.all(
    lacking.map(async ({ given }) => given + (await hasElsewhere(given, world)).replace(/^; (.*)/, ' ($1)')),
  )
  return `images: the engine has no ${names.join(', ')}, and pull is never; build or pull it in a step before this one, on this engine (${world.engine.address})`
}

/** Kubernetes pulls what is tagged latest, or not at all, for each pod, unless the pod says otherwise. */
export function warnOfLatest(
  images: readonly string[],
  { warning }: { readonly warning: (message: string) => void },
): void {
  const latest = distinct(images)
    .filter(({ tag }) => tag === 'latest')
    .map(({ given }) => given)
  if (latest.length === 0) return
  warning(
    `images: pods pull ${latest.join(', ')} again although it is loaded, for that is what Kubernetes does with the tag latest; set imagePullPolicy: IfNotPresent in them, or use another tag`,
  )
}

/**
 * Sees that the engine has every node image: see `ensureImage`.
 *
 * @returns the names by which the engine has them, by reference
 */
export async function ensureNodeImages(
  docker: Docker,
  references: readonly string[],
  world: ResolveWorld,
): Promise<ReadonlyMap<string, string>> {
  const names = references.map(async reference => {
    return [reference, await ensureImage(docker, reference, 'node-image', world)] as const
  })
  return new Map(await Promise.all(names))
}

/**
 * Sees that the engine has an image that this program runs on it, for its own architecture. It is pulled here and not by kind, so
 * that its time is seen, its failures are told apart, and other work goes on beside it.
 *
 * @param option what the image is for, named in front of a failure
 * @returns the name by which the engine has it, see `pullImage`
 */
export async function ensureImage(
  docker: Docker,
  reference: string,
  option: 'node-image' | 'registry' | 'builder',
  world: ResolveWorld,
): Promise<string> {
  const { architecture } = world.engine
  const look = (name: string): Promise<Result> => docker.try(imageArchitecture(name))
  let name = reference
  let found = await look(name)
  if (found.code !== 0) {
    name = await pullImage(docker, reference, option, world)
    found = await look(name)
  }
  const own = found.stdout.trim()
  if (own !== architecture) {
    throw new Problem(
      `${option}: ${reference} is for ${own}, and the engine runs ${architecture}; name one for ${architecture}`,
    )
  }
  return name
}
