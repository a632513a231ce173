/** An image reference, taken apart and written in full. Rules: https://pkg.go.dev/github.com/distribution/reference. */
export interface Reference {
  /** As it was given. */
  readonly given: string
  /** The registry, with its port: `docker.io`. */
  readonly registry: string
  /** The path in the registry: `library/app`. */
  readonly path: string
  /** Undefined where only a digest was given; `latest` where neither was. */
  readonly tag: string | undefined
  /** `sha256:…`; undefined where none was given. */
  readonly digest: string | undefined
  /**
   * The name by which containerd keeps the image for the kubelet: `docker.io/library/app:ci`, or `docker.io/library/app@sha256:…`
   * where there is a digest, whatever the tag. Two references with one name are one image.
   */
  readonly name: string
}

/** @param given a reference of the form [host[:port]/]path[:tag][@digest], as options are checked for */
export function parseReference(given: string): Reference {
  const [named = '', digest] = given.split('@')
  const [, repository = '', givenTag] = /^(.*?)(?::([\w.-]+))?$/.exec(named) ?? []
  const slash = repository.indexOf('/')
  const first = repository.slice(0, Math.max(slash, 0))
  // A first part is a registry where it cannot be a folder of Docker Hub's.
  const hasRegistry = /[.:]/.test(first) || first === 'localhost' || first !== first.toLowerCase()
  const registry = !hasRegistry || first === 'index.docker.io' ? 'docker.io' : first
  const rest = hasRegistry ? repository.slice(slash + 1) : repository
  const path = registry === 'docker.io' && !rest.includes('/') ? `library/${rest}` : rest
  const tag = givenTag ?? (digest === undefined ? 'latest' : undefined)
  const name = `${registry}/${path}${digest === undefined ? `:${tag}` : `@${digest}`}`
  return { given, registry, path, tag, digest, name }
}

/** As it was given, with the tag that it means: to an engine a repository's name alone may stand for all its tags. */
export function withTag({ given, tag, digest }: Reference): string {
  return digest === undefined && !given.endsWith(`:${tag}`) ? `${given}:${tag}` : given
}

/** References without those that name an image again which one before them names. */
export function distinct(references: readonly string[]): Reference[] {
  const byName = new Map<string, Reference>()
  for (const reference of references.map(parseReference)) {
    if (!byName.has(reference.name)) byName.set(reference.name, reference)
  }
  return [...byName.values()]
}
