import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { createGitHubHost, gitHubIdentity, gitHubInputs } from '../../src/host/github.ts'
import type { Host } from '../../src/host/host.ts'
import { parse } from '../../src/options.ts'

let base: string
let log: string
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'github-'))
  log = ''
  vi.spyOn(process.stdout, 'write').mockImplementation(text => {
    log += text
    return true
  })
  const variables: Record<string, string> = {
    RUNNER_TEMP: join(base, 'temp'),
    RUNNER_TOOL_CACHE: base,
    RUNNER_NAME: 'runner-1',
    RUNNER_DEBUG: '',
    NO_COLOR: '1',
    ACT: '',
    TMPDIR: base,
    GITHUB_REPOSITORY: 'owner/app',
    GITHUB_RUN_ID: '77',
    GITHUB_RUN_ATTEMPT: '2',
    GITHUB_JOB: 'e2e',
    GITHUB_ACTION: '__owner_kind-in-dind',
  }
  for (const name of ['GITHUB_STATE', 'GITHUB_ENV', 'GITHUB_OUTPUT', 'GITHUB_PATH']) {
    variables[name] = join(base, name)
    writeFileSync(join(base, name), '')
  }
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value)
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true })
})

const open = (): Host => createGitHubHost(process.env)
const written = (name: string): string => readFileSync(join(base, name), 'utf8')

test('inputs arrive by option name; one that is empty was not given', () => {
  const env = { 'INPUT_KUBERNETES-VERSION': ' 1.34 ', INPUT_IMAGES: 'a:1\nb:2', INPUT_NAME: '', PATH: '/bin' }
  expect(gitHubInputs(env)).toEqual({ 'kubernetes-version': '1.34', images: 'a:1\nb:2', name: undefined })
})

test('an input that action.yml does not know is refused, as everywhere', () => {
  expect(() =>
    parse(gitHubInputs({ INPUT_WORKER: '1' }), { readFile: () => undefined, refuseVersion: () => undefined }),
  ).toThrow('worker: no such option; workers is meant?')
})

test('runner and machine own what is made; the job is this attempt and no other cell of the matrix', () => {
  const env = {
    RUNNER_NAME: 'r',
    GITHUB_REPOSITORY: 'owner/app',
    GITHUB_RUN_ID: '7',
    GITHUB_RUN_ATTEMPT: '2',
    GITHUB_JOB: 'e2e',
  }
  expect(gitHubIdentity(env, 'cafe0123')).toEqual({
    owner: `r@${hostname()}`,
    job: 'owner/app/7/2/e2e/cafe0123',
    label: 'app',
  })
  const [one, other] = ['/opt/a/_work/_temp', '/opt/b/_work/_temp'].map(
    temp => gitHubIdentity({ ...env, RUNNER_TEMP: temp }, 'cafe0123').owner,
  )
  expect([one, other]).toEqual([`r@${hostname()}:/opt/a/_work`, `r@${hostname()}:/opt/b/_work`])
})

test.each([{}, { ACT: 'true', RUNNER_NAME: 'of the runner that runs act' }])(
  'where jobs run side by side without a runner of their own (%j), each job is its own owner',
  env => {
    expect(gitHubIdentity(env, 'cafe0123').owner).toBe(`cafe0123@${hostname()}`)
    expect(gitHubIdentity(env, 'beef4567').owner).not.toBe(gitHubIdentity(env, 'cafe0123').owner)
  },
)

test('the folder is private, in the runner’s temporary folder', () => {
  const { folder } = open()
  expect(folder).toBe(join(base, 'temp/kind-in-dind'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('all steps of a job are one job; a job elsewhere is another', () => {
  const first = open().identity.job
  expect(open().identity.job).toBe(first)
  vi.stubEnv('RUNNER_TEMP', join(base, 'other'))
  expect(open().identity.job).not.toBe(first)
})

test.each(['', '/dev/null/temp'])('without a usable RUNNER_TEMP (%j) the folder is among the temporary files', temp => {
  vi.stubEnv('RUNNER_TEMP', temp)
  const { folder } = open()
  expect(folder.startsWith(join(base, `kind-in-dind-${process.getuid?.()}/`))).toBe(true)
  expect(process.env['RUNNER_TEMP']).toBe(join(folder, `.download-${process.pid}`))
})

test('post finds the uses of its own step, the latest first', async () => {
  const pre = open()
  await pre.remember('app-1')
  await pre.remember('app-2')
  const state =
    written('GITHUB_STATE')
      .split('\n')
      .filter(line => line.startsWith('['))
      .at(-1) ?? ''
  vi.stubEnv('STATE_uses', state)
  expect(await open().uses()).toEqual(['app-2', 'app-1'])
})

test('post finds them even if the runner lost the state', async () => {
  await open().remember('app-1')
  expect(await open().uses()).toEqual(['app-1'])
})

test('post leaves the uses of other steps alone', async () => {
  await open().remember('app-1')
  vi.stubEnv('GITHUB_ACTION', '__owner_kind-in-dind_2')
  expect(await open().uses()).toEqual([])
})

test('variables, outputs and PATH go through the runner’s files', async () => {
  const host = open()
  await host.exportVariables({ KUBECONFIG: '/k' })
  await host.setOutputs({ server: 'https://docker:1' })
  await host.addPath('/tools')
  expect(written('GITHUB_ENV')).toMatch(/^KUBECONFIG<<(\S+)\n\/k\n\1\n$/)
  expect(written('GITHUB_OUTPUT')).toMatch(/^server<<(\S+)\nhttps:\/\/docker:1\n\1\n$/)
  expect(written('GITHUB_PATH')).toBe('/tools\n')
})

test('work is a group with the time it took behind it, failed or not', async () => {
  const host = open()
  expect(await host.group('Create', async () => 7)).toBe(7)
  const failing = host.group('Load', async () => {
    throw new Error('no')
  })
  await expect(failing).rejects.toThrow('no')
  expect(log).toMatch(
    /^::group::Create\n::endgroup::\n {2}done in \d+\.\ds\n::group::Load\n::endgroup::\n {2}failed after \d+\.\ds\n$/,
  )
})

test('a colour is in what people skim, unless NO_COLOR says otherwise', async () => {
  vi.stubEnv('NO_COLOR', '')
  await open().group('Create', async () => {})
  expect(log).toContain('  \u001b[32mdone in ')
})

test('the closing block is outside of any group', async () => {
  open().conclude('It is ready', ['  context  kind-c'])
  expect(log).toBe('It is ready\n  context  kind-c\n')
})

test('the summary is added to that of the job; a runner that takes none is a debug line', async () => {
  const host = open()
  expect(host.summary).toEqual({ when: 'always', draws: true })
  await host.showSummary({ cluster: 'c', style: 'success', markdown: 'One\n' })
  expect(log).toMatch(/^::debug::.*GITHUB_STEP_SUMMARY/)
  const file = join(base, 'summary')
  writeFileSync(file, 'Before\n')
  vi.stubEnv('GITHUB_STEP_SUMMARY', file)
  await host.showSummary({ cluster: 'c', style: 'success', markdown: 'One\n' })
  await host.showSummary({ cluster: 'd', style: 'error', markdown: 'Two\n' })
  expect(readFileSync(file, 'utf8')).toBe('Before\nOne\nTwo\n')
})

test('warnings and errors are annotations, secrets are masked, debug lines are there only when asked for', () => {
  const host = open()
  host.debug('one')
  host.warning('two')
  host.error('three\nfour')
  host.mask('secret')
  expect(log).toBe('::warning::two\n::error::three%0Afour\n::add-mask::secret\n')
  vi.stubEnv('RUNNER_DEBUG', '1')
  log = ''
  host.debug('five')
  expect(log).toBe('::debug::five\n')
})

test('a damaged file of the job’s identity is named', () => {
  const { folder } = open()
  for (const name of readdirSync(folder)) writeFileSync(join(folder, name), 'x')
  expect(open).toThrow(/\.job-.* is damaged/)
})

test.each([
  ['success', 'success'],
  ['failure', 'failure'],
  ['cancelled', 'cancelled'],
  ['', undefined],
  ['something else', undefined],
])('how the job went is an input that the runner fills: %j', (value, status) => {
  const host = createGitHubHost({ ...process.env, 'INPUT_JOB-STATUS': value })
  expect(host.jobStatus()).toBe(status)
  expect(host.given()).not.toHaveProperty('job-status')
})
