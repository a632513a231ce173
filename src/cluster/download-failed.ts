import { messageOf } from '../lib/problem.ts'

/** Why a download failed. The message goes on where a URL was named: "… answered 404". */
export class DownloadFailed extends Error {
  override readonly name = 'DownloadFailed'
  /** The HTTP status, where there was one. */
  readonly status: number | undefined
  constructor(message: string, status?: number) {
    super(message)
    this.status = status
  }
}

/** Puts what was thrown into words: Node's error of a connection, or something else; what has words already stays. */
export function downloadFailed(thrown: unknown): DownloadFailed {
  if (thrown instanceof DownloadFailed) return thrown
  const code = codeOf(thrown)
  const why = code === undefined ? undefined : NETWORK[code]
  return new DownloadFailed(why === undefined ? `failed (${messageOf(thrown) || code})` : `${why} (${code})`)
}

/** Node's codes of what can be wrong with a connection. */
const NETWORK: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refuses connections',
  ECONNRESET: 'broke the connection off',
  ERR_STREAM_PREMATURE_CLOSE: 'broke the connection off',
  EPIPE: 'broke the connection off',
  ENOTFOUND: 'has a host name that is not known',
  EAI_AGAIN: 'has a host name that could not be looked up',
  ETIMEDOUT: 'does not answer',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'has a certificate that is not trusted; NODE_EXTRA_CA_CERTS can name its authority',
  SELF_SIGNED_CERT_IN_CHAIN: 'has a certificate that is not trusted; NODE_EXTRA_CA_CERTS can name its authority',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    'has a certificate that is not trusted; NODE_EXTRA_CA_CERTS can name its authority',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'has a certificate that is not trusted; NODE_EXTRA_CA_CERTS can name its authority',
}

/** The code of an error of Node or of a library, such as ENOENT. */
export function codeOf(thrown: unknown): string | undefined {
  const code: unknown = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  return typeof code === 'string' ? code : undefined
}
