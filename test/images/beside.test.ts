/** The script that runs beside the engine is run for real, with an engine and nodes that are small programs. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Docker, dockerAt } from '../../src/engine/docker.ts'
import { besideOf, feedBeside } from '../../src/images/beside.ts'
import { LIMITS, type Limits, type Outcome } from '../../src/images/feed.ts'
import { type Argv, createRunner, type Runner } from '../../src/lib/run.ts'
import { aPlan } from '../builders.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'beside-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const CONTENT = Buffer.alloc(3_000_000, 'what the engine gives out')

/** @param given.gives and given.takes run for the engine's read and for a node's import, in the test's folder, with $NODE as the node's pid; given.after when all is told */
function dockerOf(
  given: { readonly gives?: string; readonly takes?: string; readonly knows?: string; readonly after?: string } = {},
) {
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  writeFileSync(join(folder, 'content'), CONTENT)
  const program = (name: string, script: string): void =>
    writeFileSync(join(bin, name), `#!/bin/bash\n${script}\n`, { mode: 0o755 })
  program(
    'curl',
    `for url; do :; done; echo "$url" >>${folder}/asked; cd ${folder}
case "$url" in */json) ${given.knows ?? 'exit 0'};; *) ${given.gives ?? 'cat content'};; esac`,
  )
  program('nsenter', `cd ${folder}; NODE=$3; shift 4; echo "$*" >$NODE.command; ${given.takes ?? 'cat >$NODE.tar'}`)
  const real = createRunner({ env: { ...process.env, PATH: `${bin}:${process.env['PATH']}`, TMPDIR: folder } })
  const removed: string[] = []
  const images: string[] = []
  const answer: Runner['try'] = async (argv, options) => {
    const [, verb] = argv
    if (verb === 'inspect') return { code: 0, stdout: '71 sha256:node\n72 sha256:other\n', stderr: '' }
    if (verb !== 'run') {
      removed.push(argv.slice(1).join(' '))
      return { code: 0, stdout: '', stderr: '' }
    }
    images.push(argv[argv.indexOf('-c') - 1] ?? '')
    const [flag = '', script = '', ...rest] = argv.slice(argv.indexOf('-c'))
    const words: Argv = ['bash', flag, `${script}${given.after ?? ''}`, ...rest]
    return real.try(words, { ...options, env: { HOSTNAME: 'me' } })
  }
  const docker: Docker = dockerAt({ env: {}, aroundProxy: {} }, { ...real, try: answer, run: answer })
  return { docker, removed, images, asked: () => readFileSync(join(folder, 'asked'), 'utf8').trim().split('\n') }
}

const debugged: string[] = []
function feed(
  docker: Docker,
  { limits = LIMITS, onProgress }: { limits?: Limits; onProgress?: (bytes: number) => void } = {},
): Promise<readonly Outcome[] | undefined> {
  debugged.length = 0
  return feedBeside(
    docker,
    { cluster: 'c', labels: {}, socket: '/docker.sock', writesLayouts: true },
    ['a:1', 'host:5000/b&c:1'],
    ['one', 'two'].map(node => ({ node, snapshotter: 'overlayfs', without: [] })),
    { debug: line => void debugged.push(line), onProgress },
    limits,
  )
}

describe('images that go beside the engine', () => {
  test('are read once, of the engine that runs it, and reach every node whole', async () => {
    const { docker, asked, images } = dockerOf()
    expect(await feed(docker)).toEqual(['done', 'done'])
    expect(images).toEqual(['sha256:node'])
    for (const pid of [71, 72]) expect(readFileSync(join(folder, `${pid}.tar`)).equals(CONTENT)).toBe(true)
    expect(asked()).toEqual([
      'http://engine/containers/me/json',
      'http://engine/images/get?names=a%3A1&names=host%3A5000%2Fb%26c%3A1',
    ])
    expect(readFileSync(join(folder, '71.command'), 'utf8')).toMatch(
      /^sh -c .* flock .* timeout .* bash -c .* take \/var\/lib\/containerd overlayfs\n$/s,
    )
  })

  test('are there when every node has said so, while the engine still ends the container', async () => {
    const { docker } = dockerOf({ after: 'sleep 60' })
    expect(await feed(docker)).toEqual(['done', 'done'])
  })

  test('tell how far they are', async () => {
    // The engine's last bytes come when the first were told.
    const { docker } = dockerOf({ gives: 'cat content; until [ -e told ]; do sleep 0.1; done; echo end' })
    const told: number[] = []
    await feed(docker, {
      onProgress: bytes => {
        told.push(bytes)
        if (bytes >= CONTENT.length) writeFileSync(join(folder, 'told'), '')
      },
    })
    expect(told.at(-1)).toBeGreaterThanOrEqual(CONTENT.length)
  })

  test('are waited for where the engine makes them ready for long', async () => {
    // What it has read of its own was told by then, and a node may take nothing for 0.3 s.
    const { docker } = dockerOf({ gives: 'sleep 2.5; cat content' })
    expect(await feed(docker, { limits: { ...LIMITS, lag: 100 } })).toEqual(['done', 'done'])
  })

  test('reach the others where one node dies', async () => {
    const { docker } = dockerOf({ takes: '[ "$NODE" = 71 ] && exit 3; cat >$NODE.tar' })
    expect(await feed(docker)).toEqual(['behind', 'done'])
    expect(readFileSync(join(folder, '72.tar')).equals(CONTENT)).toBe(true)
  })

  test.each([
    ['the socket is not there or another engine has it', { knows: 'echo 404 >&2; exit 22' }, /404/],
    ['the engine breaks off', { gives: 'head -c 1000000 content; echo lost >&2; exit 18' }, /lost/],
  ])('go through the step where %s', async (_, given, why) => {
    const { docker, removed } = dockerOf(given)
    expect(await feed(docker)).toBeUndefined()
    expect(debugged.join()).toMatch(why)
    expect(removed).toEqual([expect.stringMatching(/^rm --force --volumes c-images-[0-9a-f]{6}$/)])
  })

  test('go through the step, where each node has its own feed, when one of them takes nothing', async () => {
    const { docker, removed } = dockerOf({
      gives: 'cat content content content',
      takes: '[ "$NODE" = 71 ] && exec sleep 60; cat >$NODE.tar',
    })
    expect(await feed(docker, { limits: { ...LIMITS, lag: 100 } })).toBeUndefined()
    expect(removed).toHaveLength(1)
  })

  test('count as brought to those that ended in time', async () => {
    const { docker } = dockerOf({ takes: 'cat >$NODE.tar; [ "$NODE" = 71 ] || exec sleep 60' })
    expect(await feed(docker, { limits: { ...LIMITS, finish: 500 } })).toEqual(['done', 'behind'])
    expect(readdirSync(folder)).toContain('71.tar')
  })
})

test.each([
  [undefined, '/var/run/docker.sock'],
  ['tcp://docker:2376', '/var/run/docker.sock'],
  ['unix:///run/user/1000/docker.sock', '/run/user/1000/docker.sock'],
])('of an engine at %s the socket is %s', (host, socket) => {
  const plan = aPlan({})
  const engine = { ...plan.engine, env: host === undefined ? {} : { DOCKER_HOST: host } }
  expect(besideOf({ ...plan, engine }).socket).toBe(socket)
})
