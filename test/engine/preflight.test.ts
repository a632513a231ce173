import { describe, expect, test } from 'vitest'
import { dockerAt } from '../../src/engine/docker.ts'
import { heeding, holderOf, isDiskFull, judgeEngine, judgeSeen, probe, readProbe } from '../../src/engine/preflight.ts'
import { Problem } from '../../src/lib/problem.ts'
import { type Argv, CommandFailed, type Result, type Runner } from '../../src/lib/run.ts'

const GIB = 1024 ** 3
const fine = { memory: 4 * GIB, cgroupVersion: '2', storageDriver: 'overlay2', clockAhead: 0 }

describe('what the engine says of itself', () => {
  test('a usual one raises nothing', () => {
    expect(judgeEngine(fine, 'v1.37.0', false)).toEqual({ stops: [], warnings: [] })
  })

  test.each<[string, Partial<typeof fine>, RegExp]>([
    ['little memory', { memory: 1.5 * GIB }, /1\.5 GiB of memory and a cluster wants 2\.0 GiB.*exit code 137/],
    [
      'a clock that is a little ahead',
      { clockAhead: 45_000 },
      /clock is 45\.0s ahead of this step's, .* may not be valid.*NTP/,
    ],
    ['vfs', { storageDriver: 'vfs' }, /vfs, which copies every layer.*overlay2/],
  ])('%s is a warning', (_, engine, sentence) => {
    const { stops, warnings } = judgeEngine({ ...fine, ...engine }, 'v1.34.0', false)
    expect(stops).toEqual([])
    expect(warnings).toEqual([expect.stringMatching(sentence)])
  })

  test.each([
    ['an hour ahead', 3_600_000, 1],
    ['an hour behind', -3_600_000, 0],
    ['right, and its answer took five seconds', -5000, 0],
    ['right, by a second', 1000, 0],
  ])('a clock that is %s', (_, clockAhead, count) => {
    const { stops, warnings } = judgeEngine({ ...fine, clockAhead }, 'v1.34.0', false)
    expect(warnings).toEqual([])
    expect(stops).toHaveLength(count)
    if (count > 0)
      expect(stops[0]).toMatch(/^the engine's clock is 1h00m ahead of this step's, .* would not be valid.*NTP/)
  })

  test.each<[string, string | undefined, boolean, number]>([
    ['1', 'v1.35.0', false, 1],
    ['1', 'v1.34.4', false, 0],
    ['1', 'v1.35.0', true, 0],
    ['1', undefined, false, 0],
    ['2', 'v1.37.0', false, 0],
  ])(
    'cgroup v%s and Kubernetes %s (failCgroupV1: false is %s) stop it %i times',
    (cgroupVersion, kubernetes, allowed, count) => {
      const { stops } = judgeEngine({ ...fine, cgroupVersion }, kubernetes, allowed)
      expect(stops).toHaveLength(count)
      if (count > 0) expect(stops[0]).toMatch(/take kubernetes-version "1\.34", or an engine with cgroup v2/)
    },
  )
})

describe('what a container sees of the engine', () => {
  const printed = (instances: number, watches: number, free: number): string =>
    `${instances}\n${watches}\nFilesystem     1024-blocks      Used Available Capacity Mounted on\noverlay          263174212  12582912 ${free}      13% /\n`

  test('is read from what it prints', () => {
    expect(readProbe(printed(128, 65536, 1024))).toEqual({
      inotifyInstances: 128,
      inotifyWatches: 65536,
      freeSpace: 1024 ** 2,
    })
  })

  test('enough of all raises nothing', () => {
    expect(judgeSeen(readProbe(printed(8192, 1_048_576, 90_000_000)))).toEqual({ stops: [], warnings: [] })
  })

  test.each<[string, string, RegExp]>([
    [
      'few inotify instances',
      printed(128, 1_048_576, 90_000_000),
      /too many open files.*max_user_instances=512.*max_user_watches=524288.*\(they are 128 and 1048576\)/,
    ],
    ['few inotify watches', printed(8192, 8192, 90_000_000), /\(they are 8192 and 8192\)/],
    ['a full disk', printed(8192, 1_048_576, 900_000), /0\.9 GiB free.*docker system prune/],
  ])('%s is a warning', (_, output, sentence) => {
    expect(judgeSeen(readProbe(output)).warnings).toEqual([expect.stringMatching(sentence)])
  })
})

describe('a probe', () => {
  const seen = '8192\n1048576\nFilesystem 1024-blocks Used Available Capacity Mounted on\noverlay 9 9 9000000 1% /\n'
  const wish = {
    labels: { 'kind-in-dind.cluster': 'shop' },
    image: 'kindest/node:v1.34.0',
    listenAddress: '10.0.0.5',
    ports: [{ node: 30080, outer: 8080, address: undefined, protocol: 'TCP' as const }],
    mounts: ['/data'],
    registryPort: 5001,
  }
  const says = (stderr: string): Result => ({ code: 125, stdout: '', stderr })
  const dockerOf = (answer: (argv: Argv) => Result): ReturnType<typeof dockerAt> => {
    const runner = { try: async (argv: Argv) => answer(argv) } as Runner
    return dockerAt({ env: {}, aroundProxy: {} }, runner)
  }

  test('publishes what the node will, at the address that it will', async () => {
    const asked: Argv[] = []
    const docker = dockerOf(argv => {
      asked.push(argv)
      return { code: 0, stdout: seen, stderr: '' }
    })
    await expect(probe(docker, wish)).resolves.toMatchObject({ listenAddress: '10.0.0.5' })
    expect(asked[0]).toEqual(
      expect.arrayContaining(['--privileged', '--publish=10.0.0.5::6443', '--publish=10.0.0.5:8080:30080/tcp']),
    )
    expect(asked[0]).toEqual(expect.arrayContaining(['--publish=127.0.0.1:5001:5000', '--publish=10.0.0.5:5001:5000']))
    expect(asked[0]).toContain('--mount=type=bind,"source=/data",target=/mnt/0,readonly')
  })

  test('takes every address of the engine where it does not have the wished one', async () => {
    const docker = dockerOf(argv =>
      argv.includes('--publish=0.0.0.0::6443')
        ? { code: 0, stdout: seen, stderr: '' }
        : says(
            'driver failed programming external connectivity: listen tcp4 10.0.0.5:0: bind: cannot assign requested address',
          ),
    )
    await expect(probe(docker, wish)).resolves.toMatchObject({ listenAddress: '0.0.0.0' })
  })

  test.each<[string, string, string, RegExp]>([
    [
      'a port that a container holds is named with it',
      'Bind for 10.0.0.5:8080 failed: port is already allocated',
      'other|0.0.0.0:9090->80/tcp\nshop-db|0.0.0.0:8080->5432/tcp\n',
      /^ports: the engine's port 8080 is held by the container shop-db; end that/,
    ],
    [
      'a port that a program holds is named',
      'listen tcp4 10.0.0.5:8080: bind: address already in use',
      '',
      /^ports: the engine's port 8080 is held by a program on its machine/,
    ],
    [
      "the registry's port that a container holds is named with it",
      'Bind for 127.0.0.1:5001 failed: port is already allocated',
      'old|127.0.0.1:5001->5000/tcp\n',
      /^registry: the engine's port 5001 is held by the container old; end that, or write registry: true/,
    ],
    [
      'a mount that the engine does not have is named, without the dot of the sentence it stands in',
      'docker: Error response from daemon: invalid mount config for type "bind": bind source path does not exist: /data.',
      '',
      /^config: extraMounts names \/data, which is not on the engine's machine; /,
    ],
    [
      'an engine that allows no privileged containers says so',
      'docker: Error response from daemon: privileged mode is incompatible with user namespaces.',
      '',
      /^the engine runs no privileged containers, which kind's nodes are: .*user namespaces/,
    ],
    [
      'what else the engine says is passed on',
      'no space left on device',
      '',
      /^the engine cannot run a container of the node image as a node is run: no space left/,
    ],
  ])('%s', async (_, stderr, published, sentence) => {
    const docker = dockerOf(argv => (argv[1] === 'ps' ? { code: 0, stdout: published, stderr: '' } : says(stderr)))
    await expect(probe(docker, wish)).rejects.toThrow(sentence)
  })
})

test.each([
  [8080, 'a|0.0.0.0:8080->80/tcp, [::]:8080->80/tcp', 'a'],
  [9001, 'b|0.0.0.0:9000-9002->9000-9002/tcp', 'b'],
  [80, 'c|0.0.0.0:8080->80/tcp', undefined],
  [80, 'd|80/tcp', undefined],
  [80, '', undefined],
])('port %i of %j is held by %s', (port, line, holder) => {
  expect(holderOf(port, line)).toBe(holder)
})

describe('warnings', () => {
  test('come once each, and again with a failure that may be theirs', async () => {
    const said: string[] = []
    const { heed, blame } = heeding({ warning: message => said.push(message) })
    heed({ stops: [], warnings: ['one', 'two'] })
    heed({ stops: [], warnings: ['two'] })
    expect(said).toEqual(['one', 'two'])
    await expect(blame(() => Promise.reject(new Problem('kind could not')))).rejects.toThrow(
      'kind could not\nEarlier in this log there was a warning that may be the cause:\n  one\n  two',
    )
  })

  test('leave a cancel as it is', async () => {
    const failure = new CommandFailed(['docker', 'ps'], { code: 143, stdout: '', stderr: '' }, 'abort')
    const { heed, blame } = heeding({ warning: () => {} })
    heed({ stops: [], warnings: ['one'] })
    await expect(blame(() => Promise.reject(failure))).rejects.toBe(failure)
  })

  test('all that stops a creation comes at once', () => {
    expect(() => heeding({ warning: () => {} }).heed({ stops: ['one', 'two'], warnings: [] })).toThrow('one\ntwo')
  })
})

describe("the engine's disk", () => {
  const df = (use: string): string =>
    `Filesystem 1024-blocks Used Available Capacity Mounted on\noverlay 5242880 9 9 ${use} /\n`
  test.each<[string, Result, boolean]>([
    ['a container sees it so', { code: 0, stdout: df('100%'), stderr: '' }, true],
    [
      'no container can be made there',
      { code: 125, stdout: '', stderr: 'docker: Error response from daemon: mkdir /x: no space left on device.' },
      true,
    ],
    ['it has room: not', { code: 0, stdout: df('97%'), stderr: '' }, false],
    ['nothing is known of it: not', { code: 125, stdout: '', stderr: 'no such image' }, false],
  ])('is full where %s', async (_, answer, isFull) => {
    const asked: Argv[] = []
    const runner = {
      try: async (argv: Argv) => {
        asked.push(argv)
        return argv.includes('inspect')
          ? { code: 1, stdout: 'sha256:node\n', stderr: 'no such container: two' }
          : answer
      },
    } as Runner
    const docker = dockerAt({ env: {}, aroundProxy: {} }, runner)
    await expect(isDiskFull(docker, ['one', 'two'], { a: 'b' })).resolves.toBe(isFull)
    expect(asked[0]?.slice(-2)).toEqual(['one', 'two'])
    expect(asked[1]).toEqual(expect.arrayContaining(['--label', 'a=b', 'sha256:node']))
  })
})
