import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Host, JobFolder } from '../../src/host/host.ts'
import type { ProcessIdentity } from '../../src/lib/process.ts'
import type { Result, Runner } from '../../src/lib/run.ts'
import { tidyFolders } from '../../src/pre/tidy-folders.ts'
import { saveState } from '../../src/state.ts'
import type { World } from '../../src/world.ts'
import type { PlanFacts } from '../builders.ts'
import { aPlan } from '../builders.ts'

const HOUR = 3_600_000
const NOW = Date.UTC(2026, 0, 1)
const ME = { owner: 'agent-1', job: 'job-2' }
const ITS = { owner: 'agent-1', job: 'job-1' }
const gone: ProcessIdentity = { pid: 1, started: '0' }

let base: string
let own: string
let folders: JobFolder[]
let commands: (readonly string[])[]
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'tidy-folders-'))
  folders = []
  commands = []
  own = jobFolder('own', { mark: { ...ME, process: gone } })
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

function jobFolder(name: string, known: Partial<JobFolder> = {}): string {
  const path = join(base, name)
  mkdirSync(path)
  // A job's folder has files of its own, too.
  writeFileSync(join(path, '.uses'), '')
  folders.push({ path, files: [], mark: undefined, changed: NOW, ...known })
  return path
}

/** A use of a job that was killed, unless it says otherwise. */
function use(folder: string, facts: PlanFacts = {}, pre?: ProcessIdentity): string {
  const plan = aPlan({ folder, now: NOW, identity: ITS, ...facts })
  saveState({ plan, stage: 'making', ...(pre && { pre }) })
  return plan.folder
}

function tidy(now = NOW): Promise<string[]> {
  const run = {
    try: async (argv: readonly string[]): Promise<Result> => {
      commands.push(argv)
      return { code: 0, stdout: '', stderr: '' }
    },
  }
  const host = { folder: own, identity: { ...ME, label: '' }, jobFolders: () => folders, debug: () => {} }
  return tidyFolders({ host: host as unknown as Host, run: run as unknown as Runner, now: () => now } as World)
}

describe('a folder of another job of this owner', () => {
  test('goes with its uses and the files beside it, and says why', async () => {
    const beside = join(base, 'job-1.0123456789')
    writeFileSync(beside, '')
    const left = jobFolder('job-1', { files: [beside] })
    use(left)
    use(left, { options: { name: 'other' } })
    expect(await tidy()).toEqual(['job-1: left by the job job-1'])
    expect(readdirSync(base)).toEqual(['own'])
  })

  test('goes by its mark where there is no plan yet', async () => {
    jobFolder('job-1', { mark: { ...ITS, process: gone } })
    expect(await tidy()).toEqual(['job-1: left by the job job-1'])
    expect(readdirSync(base)).toEqual(['own'])
  })

  test('goes by its mark where the plan is damaged', async () => {
    const left = jobFolder('job-1', { mark: { ...ITS, process: gone } })
    writeFileSync(join(use(left), 'state.json'), '{')
    expect(await tidy()).toHaveLength(1)
    expect(existsSync(left)).toBe(false)
  })

  test('stays with a kept cluster, whose kubeconfig is in it, until its expiry', async () => {
    const left = jobFolder('job-1', { mark: { ...ITS, process: gone } })
    const [kept, other] = [use(left, { options: { keep: true } }), use(left, { options: { name: 'other' } })]
    expect(await tidy()).toEqual(['job-1: left by the job job-1'])
    expect([existsSync(kept), existsSync(other)]).toEqual([true, false])
    expect(await tidy(NOW + 6 * HOUR)).toEqual(['job-1: expired 0.0s ago'])
    expect(existsSync(left)).toBe(false)
  })

  test('goes after the processes that are still at work for it', async () => {
    const left = jobFolder('job-1')
    const child = spawn('sleep', ['60'])
    const ended = new Promise(resolve => child.once('exit', (_, signal) => resolve(signal)))
    const { pid = 0 } = child
    const started = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ')[21] ?? ''
    use(left, {}, { pid, started })
    await tidy()
    expect(await ended).toBe('SIGTERM')
    expect(existsSync(left)).toBe(false)
  })

  test('takes its builder out of the configuration of buildx', async () => {
    const configFolder = join(base, 'buildx')
    mkdirSync(join(configFolder, 'instances'), { recursive: true })
    const builder = { fetched: undefined, configFolder, missing: [] }
    const plan = aPlan({ folder: jobFolder('job-1'), now: NOW, identity: ITS, builder })
    saveState({ plan, stage: 'ready' })
    writeFileSync(join(configFolder, 'instances', plan.builder?.name ?? ''), '')
    await tidy()
    expect(commands).toEqual([['docker', 'buildx', 'rm', '--keep-daemon', '--force', plan.builder?.name]])
  })

  test('takes a kubeconfig of ours along, wherever the user wanted it, and no other file', async () => {
    const left = jobFolder('job-1')
    const [ours, theirs] = [join(base, 'ours'), join(base, 'theirs')]
    writeFileSync(ours, '{"current-context":"kind-c"}')
    writeFileSync(theirs, '{"current-context":"kind-other"}')
    use(left, { options: { name: 'c', kubeconfig: ours } })
    use(left, { options: { name: 'c', kubeconfig: theirs }, unique: 'fedcba9876543210' })
    await tidy()
    expect([existsSync(ours), existsSync(theirs)]).toEqual([false, true])
  })
})

describe('stays', () => {
  test.each<[string, (folder: string) => void]>([
    [
      'what a live job of another owner has',
      folder => void use(folder, { identity: { owner: 'agent-2', job: 'job-3' } }),
    ],
    ['what this job has elsewhere', folder => void use(folder, { identity: ME })],
  ])('%s', async (_, fill) => {
    const path = jobFolder('other')
    fill(path)
    expect(await tidy()).toEqual([])
    expect(readdirSync(path)).toHaveLength(2)
  })

  test.each<[string, Partial<JobFolder>]>([
    ['a job of another owner that has no plan yet', { mark: { owner: 'agent-2', job: 'job-3', process: gone } }],
    ['what does not say whose it is', {}],
  ])('%s, until it is as old as no job', async (_, known) => {
    const path = jobFolder('other', known)
    expect(await tidy(NOW + 6 * HOUR - 1)).toEqual([])
    expect(existsSync(path)).toBe(true)
    expect(await tidy(NOW + 6 * HOUR)).toEqual(['other: expired 0.0s ago'])
    expect(existsSync(path)).toBe(false)
  })

  test("this job's own folder, even where it holds what others left (GitHub's, where nobody empties it)", async () => {
    const [mine, left] = [use(own, { identity: ME }), use(own, { options: { name: 'left' } })]
    expect(await tidy(NOW + 7 * HOUR)).toEqual(['own: expired 1h00m ago'])
    expect(readdirSync(own)).toEqual(['.uses', basename(mine)])
    expect(existsSync(left)).toBe(false)
  })
})

test('what cannot be removed keeps nothing else', async () => {
  folders.push({ path: join(base, 'own/\0'), files: [], mark: { ...ITS, process: gone }, changed: NOW })
  jobFolder('job-1', { mark: { ...ITS, process: gone } })
  expect(await tidy()).toEqual(['job-1: left by the job job-1'])
})
