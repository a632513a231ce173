/** What src/cluster/kind-releases.ts is written from. Pure. */
import type { NodeImageRow } from '../src/cluster/kind-releases.ts'

/** The first release whose node image has Kubernetes versions that people still ask for. */
const OLDEST = 20

/** @param listed what `go list -m -versions sigs.k8s.io/kind` prints @returns the releases, the newest first */
export function releasesFrom(listed: string): string[] {
  const number = (version: string): number[] => version.slice(1).split('.').map(Number)
  return [...new Set(listed.trim().split(/\s+/))]
    .filter(word => /^v\d+\.\d+\.\d+$/.test(word))
    .filter(word => (number(word)[0] ?? 0) > 0 || (number(word)[1] ?? 0) >= OLDEST)
    .sort((a, b) => {
      const [x, y] = [number(a), number(b)]
      return (y[0] ?? 0) - (x[0] ?? 0) || (y[1] ?? 0) - (x[1] ?? 0) || (y[2] ?? 0) - (x[2] ?? 0)
    })
}

/**
 * @param source pkg/apis/config/defaults/image.go of that release
 * @throws Error where it names no image with a digest
 */
export function imageIn(kind: string, source: string): NodeImageRow {
  const [, kubernetes, digest] = /"kindest\/node:v(\d+\.\d+\.\d+)@(sha256:[0-9a-f]{64})"/.exec(source) ?? []
  if (kubernetes === undefined || digest === undefined)
    throw new Error(`kind ${kind} names no node image with a digest`)
  return { kind, kubernetes, digest }
}

/**
 * The file with new data in it; what stands around the data stays.
 *
 * @param checksums by platform; empty keeps those of a release that is still the newest
 */
export function formatReleases(
  file: string,
  rows: readonly NodeImageRow[],
  checksums: Readonly<Record<string, string>>,
): string {
  const newest = rows[0]?.kind ?? ''
  const stays = Object.keys(checksums).length === 0 && file.includes(`KIND = '${newest}'`)
  const sums = Object.entries(checksums).map(([platform, sum]) => `  '${platform}': '${sum}',\n`)
  const table = rows.map(
    row => `  {\n    kind: '${row.kind}',\n    kubernetes: '${row.kubernetes}',\n    digest: '${row.digest}',\n  },\n`,
  )
  const withSums = stays
    ? file
    : file.replace(
        /(KIND_CHECKSUMS[^=]*= )\{[^}]*\}/,
        (_, start: string) => `${start}{${sums.length > 0 ? `\n${sums.join('')}` : ''}}`,
      )
  return withSums
    .replace(/(export const KIND = )'[^']*'/, (_, start: string) => `${start}'${newest}'`)
    .replace(/(NODE_IMAGES[^=]*= )\[[\s\S]*?\n\]/, (_, start: string) => `${start}[\n${table.join('')}]`)
}
