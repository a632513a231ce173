/** What tests put in: each builder gives something whole and plain, and takes what matters to the test. */

import { refuseVersion } from '../src/cluster/versions.ts'
import type { Identity } from '../src/host/host.ts'
import type { Given } from '../src/lib/given.ts'
import { type Options, parse } from '../src/options.ts'
import { type Engine, makePlan, type Plan } from '../src/plan.ts'

/** Options as parsed from what a job gave; no file exists but those in `files`. */
export function parseGiven(
  given: Readonly<Record<string, Given>>,
  files: Readonly<Record<string, string>> = {},
): Options {
  return parse(given, { readFile: path => files[path], refuseVersion })
}

export function anOptions(overrides: Partial<Options> = {}): Options {
  return { ...parseGiven({}), ...overrides }
}

/** A docker-in-docker sidecar without TLS. */
export function anEngine(overrides: Partial<Engine> = {}): Engine {
  return {
    address: 'tcp://docker:2375',
    env: { DOCKER_HOST: 'tcp://docker:2375' },
    source: 'DOCKER_HOST',
    exported: false,
    hostname: 'docker',
    addresses: ['172.18.0.2'],
    aroundProxy: {},
    version: '28.5.1',
    architecture: 'amd64',
    cpus: 2,
    memory: 4 * 1024 ** 3,
    cgroupVersion: '2',
    storageDriver: 'overlay2',
    registryMirrors: [],
    clockAhead: 0,
    ...overrides,
  }
}

export function anIdentity(overrides: Partial<Identity> = {}): Identity {
  return { owner: 'runner-1/machine', job: 'run-7/e2e/1', label: 'shop', ...overrides }
}

export interface PlanFacts {
  readonly options?: Partial<Options>
  readonly engine?: Partial<Engine>
  readonly identity?: Partial<Identity>
  readonly unique?: string
  readonly now?: number
  readonly folder?: string
  readonly logsFolder?: string | undefined
  readonly nodeImage?: string
  readonly builder?: Parameters<typeof makePlan>[2]['builder']
}

export function aPlan(facts: PlanFacts = {}): Plan {
  return makePlan(anOptions(facts.options), anEngine(facts.engine), {
    identity: anIdentity(facts.identity),
    unique: facts.unique ?? '0123456789abcdef',
    now: facts.now ?? Date.UTC(2026, 0, 1),
    folder: facts.folder ?? '/job',
    logsFolder: facts.logsFolder,
    ownContainer: undefined,
    builder: facts.builder,
    nodeImage: facts.nodeImage ?? 'kindest/node:v1.34.0',
  })
}
