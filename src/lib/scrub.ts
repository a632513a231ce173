/** Takes secrets out of text that people will read: logs, descriptions. Pure. */

/** What stands where a secret was. */
const HIDDEN = '***'

/** Shorter texts are words (`admin`, `true`) that stand in every log; hiding them would hide the log. */
const SHORTEST = 8

/** Texts that are secrets by their shape, each with what stays of them. */
const SHAPES: readonly (readonly [shape: RegExp, stays: string])[] = [
  [/-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g, HIDDEN],
  // A PEM text in base64, as kubeconfigs hold them: it begins with "-----BEGIN ".
  [/LS0tLS1CRUdJTi[A-Za-z0-9+/=_-]+/g, HIDDEN],
  // JSON Web Tokens, as service accounts have: both parts begin with {" in base64.
  [/\beyJ[\w-]{8,}\.eyJ[\w-]+\.[\w-]+/g, HIDDEN],
  // kubeadm's bootstrap tokens: https://kubernetes.io/docs/reference/access-authn-authz/bootstrap-tokens/
  [/\b[a-z0-9]{6}\.[a-z0-9]{16}\b/g, HIDDEN],
  [/(certificate[- ]key:?(?:["'\s=,]|\\n)*)[0-9a-f]{64}\b/gi, `$1${HIDDEN}`],
  // The user and password of a URL.
  [/(:\/\/)[^/@\s"'`]+@/g, `$1${HIDDEN}@`],
  // What signs a URL, as registries' and release pages' storage has it.
  [/([?&](?:sig|signature|(?:x-amz|x-goog)-(?:signature|credential|security-token))=)[^\s"'&:,]+/gi, `$1${HIDDEN}`],
  [/(\bauthorization["']?\s*[:=]\s*["']?)(?:(basic|bearer)\s+)?[^\s"',]+/gi, `$1$2 ${HIDDEN}`],
  // `name=value`, `"name": "value"`: whatever ends like the name of a secret.
  [
    /((?:\b[\w.-]{0,60}(?:password|passwd|secret|token|credentials?|api[-_]?key|access[-_]?key|private[-_]?key|key-data)|"auth)["']?\s*[:=]\s*["']?)(?!\*\*\*)[^\s"',;&{}[\]]{4,}/gi,
    `$1${HIDDEN}`,
  ],
]

/**
 * Takes out what is a secret by its shape, and secrets that are known.
 *
 * @param known texts that must not stay, whatever they look like; those shorter than 8 characters are left
 */
export function scrubber(known: readonly string[]): (text: string) => string {
  const parts = known.flatMap(secret => [secret, ...secret.split('\n')]).map(part => part.trim())
  const long = [...new Set(parts)].filter(part => part.length >= SHORTEST)
  // The longest first: one secret may be the beginning of another.
  const sorted = long.sort((a, b) => b.length - a.length)
  const huge = sorted.filter(part => part.length > LONGEST_PATTERN)
  const patterns = inPatterns(sorted.slice(huge.length))
  return text => {
    const left = huge.reduce((rest, part) => rest.replaceAll(part, HIDDEN), text)
    const without = patterns.reduce((rest, pattern) => rest.replace(pattern, HIDDEN), left)
    return SHAPES.reduce((left, [shape, stays]) => left.replace(shape, stays), without)
  }
}

/** A regular expression takes no word of more than 32,767 characters (V8), and a Helm release is a Secret of more. */
const LONGEST_PATTERN = 10_000

/** Patterns for words, each of them short enough. */
function inPatterns(words: readonly string[]): RegExp[] {
  const patterns: string[] = []
  for (const word of words.map(one => one.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'))) {
    const last = patterns.at(-1)
    if (last === undefined || last.length + word.length > LONGEST_PATTERN) patterns.push(word)
    else patterns[patterns.length - 1] = `${last}|${word}`
  }
  return patterns.map(pattern => new RegExp(pattern, 'g'))
}

/** What somebody said, without what may be secret in a URL: a user and password, a signature. */
export function withoutSecrets(text: string): string {
  return text.replace(/:\/\/[^/\s"'?]*@/g, '://***@').replace(/(:\/\/[^\s"'?]*)\?[^\s"']*/g, '$1?***')
}
