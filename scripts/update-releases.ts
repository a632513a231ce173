/** Writes src/cluster/kind-releases.ts: see scripts/update-releases. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { KIND, KIND_CHECKSUMS, NODE_IMAGES } from '../src/cluster/kind-releases.ts'
import { formatReleases, imageIn, releasesFrom } from './kind-releases.ts'

const FILE = 'src/cluster/kind-releases.ts'
const PLATFORMS = ['linux-amd64', 'linux-arm64', 'darwin-amd64', 'darwin-arm64']

const go = (...args: string[]): string => execFileSync('go', args, { encoding: 'utf8', timeout: 300_000 })
const say = (line: string): void => void process.stdout.write(`${line}\n`)

// A proxy may list less than there is: what is known stays.
const listed = go('list', '-m', '-versions', 'sigs.k8s.io/kind')
const releases = releasesFrom(`${listed} ${NODE_IMAGES.map(({ kind }) => kind).join(' ')}`)
const rows = releases.map(kind => {
  const known = NODE_IMAGES.find(row => row.kind === kind)
  if (known !== undefined) return known
  const { Dir } = JSON.parse(go('mod', 'download', '-json', `sigs.k8s.io/kind@${kind}`)) as { Dir: string }
  return imageIn(kind, readFileSync(join(Dir, 'pkg/apis/config/defaults/image.go'), 'utf8'))
})
// Of the same release what is pinned stays, should its page not be reached.
const checksums: Record<string, string> = releases[0] === KIND ? { ...KIND_CHECKSUMS } : {}
for (const platform of PLATFORMS) {
  const url = `https://kind.sigs.k8s.io/dl/${releases[0]}/kind-${platform}.sha256sum`
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(20_000) })
    const found = /^([0-9a-f]{64})\b/.exec(await answer.text())?.[1]
    if (answer.ok && found !== undefined) checksums[platform] = found
    else say(`no checksum for ${platform}: ${url} answers ${answer.status}`)
  } catch (error) {
    say(`no checksum for ${platform}: ${url} is not reached (${(error as Error).message})`)
  }
}
writeFileSync(FILE, formatReleases(readFileSync(FILE, 'utf8'), rows, checksums))
say(
  `${FILE}: ${rows.length} releases, the newest ${releases[0]}, checksums for ${Object.keys(checksums).length} platforms`,
)
