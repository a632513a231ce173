/** Whatever people, pipelines and archives hand over: parsers refuse it with a sentence or take it, and no more. Seeded. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, normalize } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { safePath } from '../src/cluster/export-logs.ts'
import { createCluster, getKubeconfig } from '../src/cluster/kind.ts'
import { kindFailure, kubeletFailures, whatIsWrong } from '../src/cluster/telling-lines.ts'
import { COMMANDS, parseLoad, parseLogs } from '../src/commands.ts'
import { runInNode, takeName } from '../src/engine/containers.ts'
import { inspectImages, pull } from '../src/engine/images.ts'
import { createNetwork, networkExists } from '../src/engine/networks.ts'
import { clusterContainers, createRecord, recordsOn } from '../src/engine/records.ts'
import { pluginConfiguration } from '../src/host/buildkite.ts'
import { readCommandLine } from '../src/host/command-line.ts'
import { exportLines } from '../src/host/exports.ts'
import { readArchive } from '../src/images/archive.ts'
import { mirrorFiles } from '../src/images/mirrors.ts'
import { reason } from '../src/images/pull.ts'
import { parseReference } from '../src/images/reference.ts'
import { TAR_END, tarFile } from '../src/images/tar.ts'
import type { Given } from '../src/lib/given.ts'
import { Problem } from '../src/lib/problem.ts'
import { createRunner } from '../src/lib/run.ts'
import { scrubber } from '../src/lib/scrub.ts'
import { OPTIONS, type Options } from '../src/options.ts'
import { aPlan, parseGiven } from './builders.ts'

fc.configureGlobal({ seed: 7, numRuns: 300, interruptAfterTimeLimit: 20_000, markInterruptAsFailure: true })

/** Words that have a meaning to shells, flags, paths, YAML or images; and any others. */
const SHARP = [
  '-',
  '--',
  '--rm',
  '-v/:/x',
  '$(id)',
  '`id`',
  ';id',
  "'",
  '"',
  '\\',
  '\n',
  '\0',
  '..',
  '../../x',
  '/etc',
  '~',
]
const PLAIN = [
  'app',
  'app:ci',
  'reg.example:5000/a/b@sha256:0',
  '30080',
  '127.0.0.1:1:2/udp',
  '1.34',
  'true',
  '5m',
  '4Gi',
  'a=b',
  'kind: Cluster',
  '{}',
  'x.tar',
]
const word = fc.oneof(
  fc.constantFrom(...SHARP, ...PLAIN),
  fc.array(fc.constantFrom(...SHARP, ...PLAIN), { maxLength: 4 }).map(words => words.join('')),
  fc.string({ unit: 'binary', maxLength: 40 }),
)
const given: fc.Arbitrary<Given> = fc.oneof(
  { weight: 3, arbitrary: word },
  fc.array(word, { maxLength: 4 }),
  fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Given>,
)
const names = fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...OPTIONS.map(({ name }) => name)) }, word)
const record = fc.dictionary(names, given, { maxKeys: 6 })

/** What the work gives; undefined where it was refused. @throws what is no refusal */
function refusable<T>(work: () => T): T | undefined {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Problem)) throw error
    expect(error.message).not.toBe('')
    return undefined
  }
}

describe('parsers take it or refuse it', () => {
  test('options', () => {
    fc.assert(fc.property(record, values => void refusable(() => parseGiven(values))))
  })

  test('each option alone, so that one that is refused hides no other', () => {
    for (const { name } of OPTIONS) {
      fc.assert(
        fc.property(given, value => void refusable(() => parseGiven({ [name]: value }))),
        { numRuns: 100 },
      )
    }
  })

  test('commands', () => {
    const known = COMMANDS.flatMap(({ options }) => options.map(option => option.name))
    const values = fc.dictionary(fc.constantFrom(...known), given, { maxKeys: 3 })
    fc.assert(
      fc.property(values, some => {
        refusable(() => parseLoad(some))
        refusable(() => parseLogs(some))
      }),
    )
  })

  test('command lines', () => {
    const flag = fc.constantFrom(...OPTIONS.map(({ name }) => `--${name}`), 'up', 'down', 'load', 'logs')
    fc.assert(
      fc.property(
        fc.array(fc.oneof(flag, word), { maxLength: 6 }),
        argv => void refusable(() => readCommandLine(argv)),
      ),
    )
  })

  test("a plugin's configuration", () => {
    fc.assert(fc.property(fc.oneof(word, fc.json()), text => void refusable(() => pluginConfiguration(text))))
  })

  test('mirrors of registries', () => {
    const url = fc.tuple(
      fc.constantFrom('docker.io', 'reg.example:5000', '..', '../x'),
      fc.webUrl({ withQueryParameters: true }),
    )
    const line = fc.oneof(
      word,
      url.map(([upstream, address]) => `${upstream}=${address}`),
    )
    fc.assert(
      fc.property(fc.array(line, { maxLength: 3 }), lines => {
        const options = refusable(() => parseGiven({ 'registry-mirrors': lines }))
        for (const { path, content } of mirrorFiles(options?.registryMirrors ?? [])) {
          expect(normalize(path)).toBe(path)
          expect(path).toMatch(/^\/etc\/containerd\/certs\.d\/[^/]+\/[\w.-]+$/)
          // A line of TOML each, none of which a URL can end.
          for (const text of content.split('\n'))
            expect(text).toMatch(/^$|^(server|\[host\.| {2}capabilities| {2}override_path)/)
        }
      }),
    )
  })

  test('names of images', () => {
    const reference = fc.oneof(
      word,
      fc.tuple(word, word, word).map(([registry, path, tag]) => `${registry}/${path}:${tag}`),
    )
    fc.assert(
      fc.property(reference, given => {
        const options = refusable(() => parseGiven({ images: given, 'node-image': given }))
        for (const image of options?.images ?? []) {
          const { name, registry, path } = parseReference(image)
          expect(name.startsWith(`${registry}/${path}`)).toBe(true)
          expect(() => reason(`denied: ${image}`, image)).not.toThrow()
        }
      }),
    )
  })

  test('configs of kind', () => {
    const key = fc.constantFrom(
      'kind',
      'apiVersion',
      'nodes',
      'networking',
      'role',
      'extraMounts',
      'kubeadmConfigPatches',
      'x',
    )
    const value = fc.oneof(given, fc.constantFrom('Cluster', 'kind.x-k8s.io/v1alpha4', 'worker'))
    const { config } = fc.letrec(tie => ({
      config: fc.dictionary(
        key,
        fc.oneof({ maxDepth: 2 }, value, tie('config'), fc.array(tie('config'), { maxLength: 2 })),
        { maxKeys: 4, noNullPrototype: true },
      ),
    }))
    fc.assert(
      fc.property(config, some => {
        refusable(() => parseGiven({ config: some as Given }))
        refusable(() => parseGiven({ config: JSON.stringify(some) }))
      }),
    )
  })

  test('what failing programs say', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 400 }), said => {
        kindFailure(`ERROR: ${said}`)
        whatIsWrong(new Map([['not-ready.txt', Buffer.from(said)]]))
        kubeletFailures(new Map([['n/kubelet.log', Buffer.from(said)]]), ['n'])
      }),
    )
  })
})

describe('what goes into commands', () => {
  /** Every command that carries what a user chose. */
  const commandsOf = (options: Partial<Options>): readonly (readonly string[])[] => {
    const plan = aPlan({ options })
    const { cluster, network, nodes } = plan
    return [
      createRecord(plan),
      createNetwork(plan, { mtu: undefined, ipv6: undefined }),
      networkExists(network),
      recordsOn(network),
      clusterContainers(cluster),
      takeName(nodes[0] ?? '', cluster, 'sha256:0'),
      runInNode(nodes[0] ?? '', ['mark']),
      inspectImages((options.images ?? []).map(image => (typeof image === 'string' ? image : ''))),
      createCluster('kind', plan).slice(1),
      getKubeconfig('kind', plan, true).slice(1),
      ...(options.nodeImage?.kind === 'image' ? [pull(options.nodeImage.reference)] : []),
    ]
  }
  const flagsOf = (command: readonly string[]): string[] =>
    command
      .slice(0, command.indexOf('--') + 1 || undefined)
      .filter(one => one.startsWith('-'))
      .map(flag => flag.split('=')[0] ?? '')
  const flags = new Set(
    commandsOf(parseGiven({ name: 'c', 'node-image': 'a:1', network: 'n', images: 'app:ci' })).flatMap(flagsOf),
  )

  test('never becomes a flag', () => {
    const user = fc.dictionary(
      fc.constantFrom('name', 'network', 'node-image', 'images', 'kubeconfig', 'logs-dir'),
      word,
    )
    fc.assert(
      fc.property(user, values => {
        const options = refusable(() => parseGiven(values))
        if (options === undefined) return
        for (const flag of commandsOf(options).flatMap(flagsOf)) expect(flags).toContain(flag)
      }),
      { numRuns: 600 },
    )
  })

  test('arrives as it is: no shell reads it', async () => {
    const runner = createRunner({ env: process.env })
    const words = fc.array(
      word.filter(text => !text.includes('\0')),
      { minLength: 1, maxLength: 5 },
    )
    await fc.assert(
      fc.asyncProperty(words, async argv => {
        const { stdout } = await runner.run([
          process.execPath,
          '-e',
          'process.stdout.write(JSON.stringify(process.argv.slice(1)))',
          '--',
          ...argv,
        ])
        expect(JSON.parse(stdout)).toEqual(argv.map(text => Buffer.from(text).toString()))
      }),
      { numRuns: 8 },
    )
  })

  test('and what a shell does read, the exports, gives every value back', async () => {
    const runner = createRunner({ env: {} })
    await fc.assert(
      fc.asyncProperty(
        word.filter(text => !text.includes('\0')),
        async value => {
          const script = `${exportLines({ VALUE: value })}printf %s "$VALUE"`
          expect((await runner.run(['/bin/sh', '-c', script])).stdout).toBe(Buffer.from(value).toString())
        },
      ),
      { numRuns: 30 },
    )
  })
})

describe('what is written', () => {
  test('stays below its folder', () => {
    fc.assert(
      fc.property(
        fc.array(word, { maxLength: 4 }).map(parts => parts.join('/')),
        name => {
          const path = safePath(name)
          expect(normalize(join('/logs', path))).toBe(join('/logs', path))
          expect(path).toMatch(/^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/)
          expect(path.split('/')).not.toContain('..')
        },
      ),
    )
  })

  test('stays below the folder of the job, whatever the cluster is called', () => {
    fc.assert(
      fc.property(word, name => {
        const options = refusable(() => parseGiven({ name }))
        const { folder, kubeconfig, internalKubeconfig, logsDir } = aPlan({ options: options ?? {} })
        for (const path of [folder, kubeconfig, internalKubeconfig, logsDir]) {
          expect(normalize(path)).toBe(path)
          expect(path).toMatch(/^\/job\/[a-z0-9]/)
        }
      }),
    )
  })

  test('has no secret that is known, whatever stands around it', () => {
    const secret = fc.stringMatching(/^[\x21-\x7e]{8,40}$/)
    fc.assert(
      fc.property(secret, fc.string(), fc.string(), (value, before, after) => {
        fc.pre(!before.includes(value) && !after.includes(value) && !'***'.includes(value))
        expect(scrubber([value])(`${before}${value}${after}`)).not.toContain(value)
      }),
    )
  })

  test('is scrubbed in time that grows with its length alone', () => {
    const scrub = scrubber([])
    for (const hard of ['a-', 'token', '://', 'eyJ', '-----BEGIN PRIVATE KEY-----', 'authorization:', '.', '"']) {
      const started = performance.now()
      scrub(hard.repeat(200_000 / hard.length))
      expect(performance.now() - started, hard).toBeLessThan(2000)
    }
  })
})

describe('archives', () => {
  const folder = mkdtempSync(join(tmpdir(), 'fuzz-'))
  afterAll(() => rmSync(folder, { recursive: true }))

  test('are read or refused; what their members are called is no path of ours', async () => {
    const member = fc.constantFrom(
      'manifest.json',
      'index.json',
      'oci-layout',
      '../escaped',
      '/tmp/escaped',
      'blobs/sha256/../../x',
    )
    const content = fc.oneof(
      fc.json(),
      word,
      fc.constant('[{"Config":"../escaped","RepoTags":["a:b"],"Layers":["/etc/passwd"]}]'),
    )
    const members = fc.array(
      fc.tuple(
        fc.oneof(
          member,
          word.filter(text => text !== '').map(text => text.slice(0, 60)),
        ),
        content,
      ),
      { maxLength: 5 },
    )
    const cut = fc.integer({ min: 0, max: 2000 })
    const archive = join(folder, 'a.tar')
    await fc.assert(
      fc.asyncProperty(members, fc.option(cut), async (some, at) => {
        const whole = Buffer.concat([...some.map(([name, text]) => tarFile(name, Buffer.from(text))), TAR_END])
        writeFileSync(archive, at === null ? whole : whole.subarray(0, at))
        await readArchive(archive, 'images', 'amd64').catch((error: unknown) => {
          if (!(error instanceof Problem)) throw error
        })
        expect(readdirSync(folder)).toEqual(['a.tar'])
        expect(existsSync(join(folder, '../escaped'))).toBe(false)
      }),
      { numRuns: 100 },
    )
  })
})
