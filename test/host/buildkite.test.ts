import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import {
  buildkiteIdentity,
  buildkiteStatus,
  createBuildkiteHost,
  pluginConfiguration,
} from '../../src/host/buildkite.ts'
import type { Host } from '../../src/host/host.ts'
import type { Result, Runner, RunOptions } from '../../src/lib/run.ts'

let base: string
let env: Record<string, string | undefined>
let log: string[]
let commands: { argv: readonly string[]; options: RunOptions | undefined }[]
let agentFails: boolean

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'buildkite-'))
  vi.stubEnv('TMPDIR', base)
  log = []
  commands = []
  agentFails = false
  writeFileSync(join(base, 'exports'), '')
  env = {
    HOME: base,
    NO_COLOR: '1',
    BUILDKITE_JOB_ID: '0190-a',
    BUILDKITE_AGENT_NAME: 'agent-1',
    BUILDKITE_PIPELINE_SLUG: 'app',
    BUILDKITE_PLUGIN_CONFIGURATION: '{"workers":1}',
    KIND_IN_DIND_EXPORTS: join(base, 'exports'),
  }
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(base, { recursive: true })
})

const run: Pick<Runner, 'run'> = {
  run: async (argv, options): Promise<Result> => {
    commands.push({ argv, options })
    if (agentFails) throw new Error('the agent says no')
    return { code: 0, stdout: '', stderr: '' }
  },
}
const open = (): Host => createBuildkiteHost(env, run as Runner, line => log.push(line))

test('the configuration comes with its types', () => {
  env['BUILDKITE_PLUGIN_CONFIGURATION'] = '{"images":["app:ci"],"keep":true,"workers":1,"name":"x"}'
  expect(open().given()).toEqual({ images: ['app:ci'], keep: true, workers: 1, name: 'x' })
  expect(log).toEqual([])
})

test('a configuration that the agent dropped means defaults, and one line says so', () => {
  delete env['BUILDKITE_PLUGIN_CONFIGURATION']
  expect(open().given()).toEqual({})
  expect(log).toEqual([expect.stringMatching(/^Warning: .*defaults.*null/)])
})

test.each([
  ['null', {}],
  ['{}', {}],
  ['', {}],
])('the configuration %j is none', (json, expected) => {
  expect(pluginConfiguration(json)).toEqual(expected)
})

test.each([
  ['["images"]', /not a mapping of options but \["images"\]/],
  ['"x"', /not a mapping/],
  ['{', /BUILDKITE_PLUGIN_CONFIGURATION is not JSON/],
])('the configuration %j is refused', (json, message) => {
  expect(() => pluginConfiguration(json)).toThrow(message)
})

test('agent and machine own what is made; a retry is another job', () => {
  expect(buildkiteIdentity({ ...env, BUILDKITE_RETRY_COUNT: '1' })).toEqual({
    owner: `agent-1@${hostname()}`,
    job: '0190-a/1',
    label: 'app',
  })
  expect(buildkiteIdentity({ BUILDKITE_AGENT_ID: 'id-7' }).owner).toBe(`id-7@${hostname()}`)
  const [one, other] = ['id-1', 'id-2'].map(
    id => buildkiteIdentity({ BUILDKITE_AGENT_NAME: 'of both', BUILDKITE_AGENT_ID: id }).owner,
  )
  expect(one).not.toBe(other)
})

test('the folder is the job’s own and private', () => {
  const { folder } = open()
  expect(folder).toBe(join(base, 'kind-in-dind-0190-a'))
  expect(statSync(folder).mode & 0o777).toBe(0o700)
})

test('a job id cannot lead out of it', () => {
  env['BUILDKITE_JOB_ID'] = '../../x'
  expect(open().folder).toBe(join(base, 'kind-in-dind-------x'))
})

test('pre-exit looks where pre-command was, even if another hook changed TMPDIR', async () => {
  const pre = open()
  await pre.remember('app-1')
  expect(readFileSync(join(base, 'exports'), 'utf8')).toBe(`export KIND_IN_DIND_FOLDER='${pre.folder}'\n`)
  vi.stubEnv('TMPDIR', join(base, 'elsewhere'))
  env['KIND_IN_DIND_FOLDER'] = pre.folder
  expect(await open().uses()).toEqual(['app-1'])
  env['BUILDKITE_JOB_ID'] = '0190-b'
  expect(open().folder).not.toBe(pre.folder)
})

test('each listing of the plugin finds its own uses by its configuration', async () => {
  await open().remember('app-1')
  await open().remember('app-2')
  env['BUILDKITE_PLUGIN_CONFIGURATION'] = '{"workers":2}'
  expect(await open().uses()).toEqual([])
  env['BUILDKITE_PLUGIN_CONFIGURATION'] = '{"workers":1}'
  expect(await open().uses()).toEqual(['app-2', 'app-1'])
})

test('variables and PATH are lines for the hook to source', async () => {
  const host = open()
  await host.exportVariables({ KUBECONFIG: "/it's" })
  await host.addPath('/tools')
  expect(readFileSync(join(base, 'exports'), 'utf8')).toBe(
    `export KUBECONFIG='/it'\\''s'\nexport PATH='/tools':"$PATH"\n`,
  )
})

test('without the hook’s file the error names the variable', async () => {
  delete env['KIND_IN_DIND_EXPORTS']
  await expect(open().exportVariables({ A: '1' })).rejects.toThrow(/KIND_IN_DIND_EXPORTS is not set/)
})

test('log: groups with their time, warnings and errors in plain lines, an error opens its group', async () => {
  const host = open()
  await host.group('Create', async () => host.info('working'))
  host.warning('careful')
  host.error('broken')
  host.debug('hidden')
  expect(log).toEqual([
    '--- Create',
    'working',
    expect.stringMatching(/^done in \d+\.\ds$/),
    'Warning: careful',
    '^^^ +++\nError: broken',
  ])
})

test('the closing block opens a group that is open', () => {
  open().conclude('It is ready', ['  context  kind-c'])
  expect(log).toEqual(['+++ :kubernetes: It is ready\n  context  kind-c'])
})

test('a colour is in warnings and errors, unless NO_COLOR says otherwise', () => {
  delete env['NO_COLOR']
  open().warning('careful')
  open().error('broken')
  expect(log).toEqual(['\u001b[33mWarning: careful\u001b[0m', '^^^ +++\n\u001b[31mError: broken\u001b[0m'])
})

test('a summary is an annotation of the build, one for each job and each of its clusters, by default after a failure', async () => {
  const host = open()
  expect(host.summary).toEqual({ when: 'on-failure', draws: false })
  await host.showSummary({ cluster: undefined, style: 'error', markdown: 'because' })
  await host.showSummary({ cluster: 'c', style: 'success', markdown: 'ready' })
  const annotate = (style: string, context: string, input: string) => ({
    argv: ['buildkite-agent', 'annotate', '--style', style, '--context', context],
    options: { input, timeout: 5000 },
  })
  expect(commands).toEqual([
    annotate('error', 'kind-in-dind-0190-a', 'because'),
    annotate('success', 'kind-in-dind-0190-a-c', 'ready'),
  ])
})

test('an agent that cannot annotate is a debug line', async () => {
  agentFails = true
  const summary = { cluster: 'c', style: 'error', markdown: 'because' } as const
  await open().showSummary(summary)
  expect(log).toEqual([])
  env['KIND_IN_DIND_DEBUG'] = '1'
  await open().showSummary(summary)
  expect(log).toEqual(['the agent says no'])
})

test('a secret goes to the agent’s redactor on stdin, never as an argument', () => {
  open().mask('s3cret')
  expect(commands).toEqual([
    { argv: ['buildkite-agent', 'redactor', 'add'], options: { input: 's3cret', timeout: 5000 } },
  ])
})

test('tools are downloaded into the job’s folder and kept in the user’s cache', () => {
  const { folder } = open()
  expect(env['RUNNER_TEMP']).toBe(join(folder, `.download-${process.pid}`))
  expect(env['RUNNER_TOOL_CACHE']).toBe(join(base, '.cache/kind-in-dind'))
})

test.each([
  [{}, undefined],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '' }, undefined],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '0' }, 'success'],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '1' }, 'failure'],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '137' }, 'failure'],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '-1' }, 'cancelled'],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '143' }, 'cancelled'],
  [{ BUILDKITE_COMMAND_EXIT_STATUS: '1', BUILDKITE_JOB_CANCELLED: 'true' }, 'cancelled'],
])('how the job went, by %j', (variables, status) => {
  expect(buildkiteStatus(variables)).toBe(status)
})

test('files are kept as artifacts, below the name of their folder', async () => {
  const { signal } = new AbortController()
  await open().keepFiles('/job/use/logs/shop', signal)
  expect(commands).toEqual([
    {
      argv: ['buildkite-agent', 'artifact', 'upload', 'shop/**/*'],
      options: { cwd: '/job/use/logs', timeout: 60_000, signal },
    },
  ])
  agentFails = true
  await open().keepFiles('/job/use/logs/shop', signal)
  expect(log.at(-1)).toBe('Warning: buildkite-agent could not upload them: the agent says no')
})
