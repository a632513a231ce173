import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Host } from '../../src/host/host.ts'
import type { Argv, Result, Runner } from '../../src/lib/run.ts'
import { createTimeline } from '../../src/lib/timeline.ts'
import { pre } from '../../src/pre.ts'
import { newReport } from '../../src/report/report.ts'
import { loadStates } from '../../src/state.ts'
import type { World } from '../../src/world.ts'
import { anIdentity } from '../builders.ts'

let folder: string
let engine: Server
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cancel-'))
  const info = {
    ServerVersion: '28.5.1',
    Architecture: 'x86_64',
    NCPU: 2,
    MemTotal: 2 ** 33,
    CgroupVersion: '2',
    Driver: 'overlay2',
  }
  // Nothing runs it, but it must be there.
  writeFileSync(join(folder, 'docker'), '', { mode: 0o755 })
  engine = createServer((_, response) => response.end(JSON.stringify(info)))
  await new Promise<void>(resolve => engine.listen(0, '127.0.0.1', resolve))
})
afterEach(() => {
  engine.close()
  rmSync(folder, { recursive: true, force: true })
})

/** What commands print, by how they begin. */
const ANSWERS = {
  'kind version': 'kind v0.33.0 go1.25 linux/amd64',
  'docker image inspect --format={{.Architecture}}': 'amd64',
  'docker run':
    '8192\n1048576\nFilesystem 1024-blocks Used Available Capacity Mounted on\noverlay 90000000 10 89000000 1% /\n',
}

/** Cancels a start while kind makes its nodes. @returns what was still asked of the engine, in the order of the questions */
async function cancelled(cancelLimit: number | undefined): Promise<string[]> {
  const cancel = new AbortController()
  let labels = ''
  const answer = async (argv: Argv): Promise<Result> => {
    const said = argv.join(' ')
    if (said.startsWith('docker volume create')) {
      const pairs = argv.filter((_, index) => argv[index - 1] === '--label').map(label => label.split('='))
      labels = JSON.stringify(Object.fromEntries(pairs))
    }
    if (said.startsWith('docker volume inspect')) {
      return labels === '' ? { code: 1, stdout: '', stderr: 'no such volume' } : { code: 0, stdout: labels, stderr: '' }
    }
    const known = Object.entries(ANSWERS).find(([start]) => said.startsWith(start))
    return { code: 0, stdout: known?.[1] ?? '', stderr: '' }
  }
  const begun = async (argv: Argv): Promise<Result> => {
    if (argv[1] !== 'create') return answer(argv)
    setImmediate(() => cancel.abort())
    return new Promise((_, reject) => cancel.signal.addEventListener('abort', () => reject(new Error('ended'))))
  }
  const asked: string[] = []
  const anyway = async (argv: Argv): Promise<Result> => {
    asked.push(argv.slice(1).join(' '))
    return argv[1] === 'ps' ? { code: 0, stdout: 'n1\n', stderr: '' } : answer(argv)
  }
  const { port } = engine.address() as AddressInfo
  const nothing = (): void => {}
  const host: Partial<Host> = {
    ...{ name: 'buildkite', cancelLimit, env: { PATH: folder }, identity: anIdentity(), folder, downloads: folder },
    given: () => ({
      ...{
        'docker-host': `tcp://127.0.0.1:${port}`,
        'kind-version': 'installed',
        'node-image': 'kindest/node:v1.34.4',
      },
    }),
    ...{ info: nothing, debug: nothing, warning: nothing, error: nothing, mask: nothing, jobFolders: () => [] },
    group: (_, work) => work(),
    remember: async () => {},
  }
  const runner = (run: typeof begun): Runner => ({ run, try: run }) as unknown as Runner
  const world = {
    ...{
      host,
      run: runner(begun),
      runAnyway: runner(anyway),
      signal: cancel.signal,
      now: Date.now,
      report: newReport(),
    },
    ...{ timeline: createTimeline(() => performance.now()), self: { node: 'node', cli: 'cli' } },
  } as unknown as World
  await expect(pre(world)).rejects.toThrow('ended')
  expect(loadStates(folder)).toMatchObject([{ stage: 'cancelled' }])
  // The engine is asked beside all that ends.
  await new Promise(resolve => setImmediate(resolve))
  return asked
}

test('a start that is cancelled has its nodes removed at once where the host leaves seconds', async () => {
  expect((await cancelled(6000)).at(-1)).toBe('rm --force --volumes n1')
})

test('elsewhere they are left for a look, until post', async () => {
  expect(await cancelled(undefined)).toEqual([])
})
