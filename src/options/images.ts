/** The options of images, and what an image may be called. Pure. */
import { type Given, list, type Reader, show, text } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import type { Option } from './option.ts'

export const IMAGE_OPTIONS: readonly Option[] = [
  {
    name: 'images',
    schema: 'list',
    default: '',
    sentence:
      'References and archives of images to have in every node before the job goes on; the engine pulls what it lacks.',
  },
  {
    name: 'pull',
    schema: 'string',
    default: 'missing',
    sentence: '`missing` or `never`: whether the engine may pull what it lacks of `images`.',
  },
]

export interface ImageOptions {
  readonly images: readonly string[]
  /** Whether the engine may pull what it lacks. */
  readonly pull: 'missing' | 'never'
}

export function readImageOptions({ option }: Reader): ImageOptions {
  return {
    images: option('images', images, []),
    pull: option('pull', pull, 'missing'),
  }
}

/** https://pkg.go.dev/github.com/distribution/reference: [host[:port]/]path[:tag][@digest]. */
const REFERENCE =
  /^(?:[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?(?::\d+)?\/)?[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*(?::[\w][\w.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$/

export function reference(word: string): string {
  if (!REFERENCE.test(word))
    throw new Problem(`${show(word)} is not an image reference such as registry.example/app:ci`)
  return word
}

/** Whether a word is an archive of images by its name alone: by its ending, or because no reference begins like that. */
export function isArchiveName(word: string): boolean {
  return /\.(tar|tgz|tar\.gz|tar\.zst)$/.test(word) || /^\.{0,2}\//.test(word)
}

/** The option `images`, of load too. @throws Problem for what cannot be loaded */
export function images(value: Given): string[] {
  return list(value).map(word => {
    if (isArchiveName(word)) return word
    if (/^sha256:/.test(word)) {
      throw new Problem(
        `${show(word)} is an id, by which no pod can name an image; tag it (docker tag) and name the tag`,
      )
    }
    return reference(word)
  })
}

function pull(value: Given): 'missing' | 'never' {
  const word = text(value)
  if (word === 'missing' || word === 'never') return word
  throw new Problem(`${show(value)} is neither missing nor never`)
}
