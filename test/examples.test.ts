import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parseAllDocuments, parse as parseYaml } from 'yaml'
import type { Given } from '../src/lib/given.ts'
import { parseGiven } from './builders.ts'

const EXAMPLES = join(import.meta.dirname, '../examples')
const files = readdirSync(EXAMPLES, { recursive: true, encoding: 'utf8' }).filter(file => /\.ya?ml$/.test(file))
const read = (file: string): string => readFileSync(join(EXAMPLES, file), 'utf8')

describe.each(files)('%s', file => {
  test('is YAML, and says at its top what it is', () => {
    for (const document of parseAllDocuments(read(file))) {
      expect([...document.errors, ...document.warnings]).toEqual([])
    }
    expect(read(file)).toMatch(/^# [A-Z]/)
  })

  test('is named in the README, or by an example that is', () => {
    const readme = readFileSync(join(EXAMPLES, '../README.md'), 'utf8')
    const beside = files.filter(other => dirname(other) === dirname(file) && readme.includes(`examples/${other}`))
    expect(readme.includes(`examples/${file}`) || beside.length > 0 || dirname(file) === 'web').toBe(true)
  })
})

interface Pipeline {
  readonly steps: readonly { readonly plugins: readonly Readonly<Record<string, Readonly<Record<string, Given>>>>[] }[]
}
const pipelines = files.filter(file => /^steps:/m.test(read(file)))

test('there are pipelines for every place', () => {
  expect(pipelines.map(file => dirname(file))).toEqual(
    expect.arrayContaining(['buildkite', 'agent-stack-k8s', 'elastic-stack']),
  )
})

test.each(pipelines)('%s gives the plugin options that it has', file => {
  const plugins = (parseYaml(read(file)) as Pipeline).steps.flatMap(step => step.plugins)
  const ours = plugins
    .flatMap(Object.entries)
    .filter(([name]) => name.startsWith('https://github.com/OWNER/kind-in-dind#'))
  expect(ours.length).toBeGreaterThan(0)
  for (const [, given] of ours) {
    // As the agent leaves them where it puts variables in, and where a matrix does.
    const text = JSON.stringify(given)
      .replace(/\$BUILDKITE_BUILD_ID/g, '1')
      .replace(/\{\{matrix\}\}/g, '1.34')
    parseGiven(JSON.parse(text) as Record<string, Given>)
  }
})

interface Container {
  readonly name: string
  readonly restartPolicy?: string
  readonly args?: readonly string[]
  readonly env?: readonly { readonly name: string; readonly value: string }[]
  readonly securityContext?: { readonly privileged?: boolean }
  readonly startupProbe?: object
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
}
interface PodSpec {
  readonly initContainers: readonly Container[]
  readonly containers: readonly Container[]
  readonly volumes: readonly { readonly name: string; readonly emptyDir?: object }[]
}

/** Where the chart takes the pod from, the engine's container and the one in which the job's commands run. */
const PODS: Readonly<Record<string, { spec: (values: never) => PodSpec; engine: string; job: string }>> = {
  'arc/values.yaml': {
    spec: (values: { template: { spec: PodSpec } }) => values.template.spec,
    engine: 'dind',
    job: 'runner',
  },
  'agent-stack-k8s/values.yaml': {
    spec: (values: { config: { 'pod-spec-patch': PodSpec } }) => values.config['pod-spec-patch'],
    engine: 'docker',
    job: 'container-0',
  },
}

describe.each(Object.entries(PODS))('the pod of %s', (file, given) => {
  const { initContainers, containers, volumes } = given.spec(parseYaml(read(file)) as never)
  const engine = initContainers.find(({ name }) => name === given.engine)
  const job = containers.find(({ name }) => name === given.job)

  test('has an engine as a privileged sidecar, which answers before the job begins', () => {
    expect(engine).toMatchObject({ restartPolicy: 'Always', securityContext: { privileged: true } })
    expect(engine?.startupProbe).toBeDefined()
  })

  test('has the engine at the address that the job is told', () => {
    const address = job?.env?.find(({ name }) => name === 'DOCKER_HOST')?.value
    expect(engine?.args).toContain(`--host=${address}`)
    // One on a port is for this pod alone; a socket is in a volume of both.
    if (address?.startsWith('tcp:')) expect(address).toBe('tcp://127.0.0.1:2375')
    else {
      const folder = { name: 'dind-socket', mountPath: dirname(address?.replace('unix://', '') ?? '') }
      expect(engine?.volumeMounts).toContainEqual(folder)
      expect(job?.volumeMounts).toContainEqual(folder)
    }
  })

  test('has a volume for every mount and for what the engine stores', () => {
    const mounts = [...initContainers, ...containers].flatMap(({ volumeMounts = [] }) => volumeMounts)
    const names = volumes.map(({ name }) => name)
    expect([...new Set(mounts.map(({ name }) => name))].sort()).toEqual([...names].sort())
    const store = engine?.volumeMounts?.find(({ mountPath }) => mountPath === '/var/lib/docker')
    expect(volumes.find(({ name }) => name === store?.name)?.emptyDir).toBeDefined()
  })
})
