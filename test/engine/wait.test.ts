import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Endpoint } from '../../src/engine/ask.ts'
import { findEngine } from '../../src/engine/engine.ts'
import { clockAhead, waitForEngine } from '../../src/engine/wait.ts'
import type { Engine } from '../../src/plan.ts'
import { ADDRESS, type FakeEngine, makeCertificates, startEngine } from './fake-engine.ts'

const good = makeCertificates()
const foreign = makeCertificates()
const client = join(good.folder, 'client')
const foreignClient = join(foreign.folder, 'client')
const incomplete = join(good.folder, 'incomplete')
/** Our authority with somebody else's client certificate: the server is trusted, the client is not. */
const mixed = join(good.folder, 'mixed')

beforeAll(() => {
  for (const folder of [incomplete, mixed]) mkdirSync(folder)
  for (const name of ['ca.pem', 'cert.pem']) copyFileSync(join(client, name), join(incomplete, name))
  for (const name of ['cert.pem', 'key.pem']) copyFileSync(join(foreignClient, name), join(mixed, name))
  copyFileSync(join(client, 'ca.pem'), join(mixed, 'ca.pem'))
})
afterAll(() => {
  good.remove()
  foreign.remove()
})

const running: FakeEngine[] = []
afterEach(async () => {
  await Promise.all(running.splice(0).map(engine => engine.close()))
})
async function plainEngine(): Promise<void> {
  running.push(await startEngine(undefined, 2375))
}
async function tlsEngine(): Promise<void> {
  running.push(await startEngine(good.folder, 2376))
}

/** Milliseconds: the rows whose refusal is worth waiting for wait this long. */
const LIMIT = 400
const world = { signal: new AbortController().signal, info: () => {}, debug: () => {} }
const find = (env: Record<string, string>, dockerWait = LIMIT): Promise<Engine> =>
  findEngine({ dockerHost: undefined, dockerWait }, { ...world, env })

const host = (port: number): Record<string, string> => ({ DOCKER_HOST: `tcp://${ADDRESS}:${port}` })
const tls = (port: number, folder: string): Record<string, string> => ({
  ...host(port),
  DOCKER_TLS_VERIFY: '1',
  DOCKER_CERT_PATH: folder,
})

describe('a certificate of an engine whose clock is off', () => {
  const HOUR = 3_600_000
  const inHours = (hours: number): Date => new Date(Date.now() + hours * HOUR)

  test.each<[string, [Date, Date], string]>([
    ['by an hour to the future', [inHours(1), inHours(48)], 'CERT_NOT_YET_VALID'],
    ['or that is a year old', [inHours(-72), inHours(-1)], 'CERT_HAS_EXPIRED'],
  ])('%s is named at once, with the clocks', async (_, valid, code) => {
    const off = makeCertificates(valid)
    onTestFinished(off.remove)
    running.push(await startEngine(off.folder, 2376))
    await expect(find(tls(2376, join(off.folder, 'client')), 60_000)).rejects.toThrow(
      `has a certificate that is not valid now (${code}): renew it, and compare the clocks`,
    )
  })
})

describe('every combination of port, TLS variable and certificates works or names the variable to change', () => {
  test.each<[string, Record<string, string>]>([
    ['2375 without TLS variables', host(2375)],
    ['2375 with certificates lying around but no DOCKER_TLS_VERIFY', { ...host(2375), DOCKER_CERT_PATH: client }],
  ])('a plain engine answers at %s', async (_, env) => {
    await plainEngine()
    await expect(find(env)).resolves.toMatchObject({ address: `tcp://${ADDRESS}:2375`, version: '28.5.2' })
  })

  test('a TLS engine answers at 2376 with DOCKER_TLS_VERIFY and complete certificates', async () => {
    await tlsEngine()
    await expect(find(tls(2376, client))).resolves.toMatchObject({
      address: `tcp://${ADDRESS}:2376`,
      cpus: 2,
      registryMirrors: ['https://mirror.example/'],
    })
  })

  test.each<[string, () => Promise<void>, Record<string, string>, RegExp]>([
    [
      '2375, DOCKER_TLS_VERIFY, complete, plain engine',
      plainEngine,
      tls(2375, client),
      /speaks plain HTTP.*: unset DOCKER_TLS_VERIFY/,
    ],
    [
      '2375, DOCKER_TLS_VERIFY, incomplete, plain engine',
      plainEngine,
      tls(2375, incomplete),
      /speaks plain HTTP.*: unset DOCKER_TLS_VERIFY/,
    ],
    [
      '2375, DOCKER_TLS_VERIFY, foreign, plain engine',
      plainEngine,
      tls(2375, foreignClient),
      /speaks plain HTTP.*: unset DOCKER_TLS_VERIFY/,
    ],
    ['2375, no TLS variable, TLS engine', tlsEngine, host(2375), /port 2376 is open: set DOCKER_HOST=tcp:\S+:2376/],
    [
      '2375, DOCKER_TLS_VERIFY, complete, TLS engine',
      tlsEngine,
      tls(2375, client),
      /port 2376 is open: set DOCKER_HOST=tcp:\S+:2376/,
    ],
    [
      '2375, DOCKER_TLS_VERIFY, foreign, TLS engine',
      tlsEngine,
      tls(2375, foreignClient),
      /port 2376 is open: set DOCKER_HOST=tcp:\S+:2376/,
    ],
    [
      '2376, no TLS variable, TLS engine',
      tlsEngine,
      host(2376),
      /speaks TLS but is asked without: set DOCKER_TLS_VERIFY=1/,
    ],
    [
      '2376, DOCKER_TLS_VERIFY, incomplete, TLS engine',
      tlsEngine,
      tls(2376, incomplete),
      /lacks key\.pem: .*DOCKER_CERT_PATH/,
    ],
    [
      '2376, DOCKER_TLS_VERIFY, foreign, TLS engine',
      tlsEngine,
      tls(2376, foreignClient),
      /did not sign.*: .*DOCKER_CERT_PATH/,
    ],
    [
      '2376, DOCKER_TLS_VERIFY, a client of another authority, TLS engine',
      tlsEngine,
      tls(2376, mixed),
      /closes the connection after our certificate: .*DOCKER_CERT_PATH/,
    ],
    [
      '2376, no TLS variable, plain engine',
      plainEngine,
      host(2376),
      /port 2375 is open: set DOCKER_HOST=tcp:\S+:2375$/,
    ],
    [
      '2376, DOCKER_TLS_VERIFY, complete, plain engine',
      plainEngine,
      tls(2376, client),
      /port 2375 is open: set DOCKER_HOST=tcp:\S+:2375 and unset DOCKER_TLS_VERIFY/,
    ],
  ])('%s', async (_, start, env, sentence) => {
    await start()
    const failed = find(env)
    await expect(failed).rejects.toThrow(/^no Docker engine answers/)
    await expect(failed).rejects.toThrow(sentence)
  })
})

describe('an engine that is late', () => {
  test('is waited for', async () => {
    const found = find(host(2375), 10_000)
    await plainEngine()
    await expect(found).resolves.toMatchObject({ version: '28.5.2' })
  })

  test('is waited for with its certificates', async () => {
    await tlsEngine()
    const late = join(good.folder, 'late')
    const found = find(tls(2376, late), 10_000)
    mkdirSync(late)
    for (const name of ['ca.pem', 'cert.pem', 'key.pem']) copyFileSync(join(client, name), join(late, name))
    await expect(found).resolves.toMatchObject({ version: '28.5.2' })
    rmSync(late, { recursive: true })
  })

  test('is waited for no longer than docker-wait, which the sentence names', async () => {
    await expect(find(host(2375))).rejects.toThrow(
      new RegExp(
        `^no Docker engine answers after 0\\.4s \\(docker-wait\\): tcp://${ADDRESS}:2375 \\(found by DOCKER_HOST\\) refuses connections`,
      ),
    )
  })

  test('is not waited for any more when the job is cancelled', async () => {
    const cancel = new AbortController()
    const endpoint: Endpoint = { address: `tcp://${ADDRESS}:2375`, env: {}, source: 'DOCKER_HOST', exported: false }
    const waiting = waitForEngine(async () => [endpoint], 60_000, {
      ...world,
      resolve: async () => [],
      signal: cancel.signal,
      info: () => cancel.abort(),
    })
    await expect(waiting).rejects.toThrow(/abort/i)
  })
})

describe('other ways of not answering', () => {
  test('a name that nothing resolves', async () => {
    await expect(find({ DOCKER_HOST: 'tcp://nobody.invalid:2375' })).rejects.toThrow(/has a name that nothing resolves/)
  })

  test('a socket that is not there', async () => {
    await expect(find({ DOCKER_HOST: `unix://${good.folder}/none.sock` })).rejects.toThrow(
      /none\.sock .*does not exist/,
    )
  })

  test('a port where something else listens', async () => {
    const server = createServer(socket => socket.on('error', () => {}).end('220 mail\r\n', () => socket.destroy()))
    await new Promise<void>(resolve => server.listen(2375, ADDRESS, resolve))
    await expect(find(host(2375))).rejects.toThrow(/is no engine, it does not speak HTTP/)
    await new Promise(resolve => server.close(resolve))
  })
})

test.each([
  ['2026-01-01T13:00:00.123456789Z', 3_600_123],
  ['2026-01-01T13:00:00+01:00', 0],
  ['2026-01-01T11:59:59Z', -1000],
  ['', 0],
  [undefined, 0],
])('an engine that says it is %s is ahead by %i ms', (said, ahead) => {
  expect(clockAhead(said, Date.UTC(2026, 0, 1, 12))).toBe(ahead)
})

test('where there is no docker CLI nobody waits for an engine', async () => {
  await expect(find({ DOCKER_HOST: 'tcp://127.0.0.1:1', PATH: '/nowhere' })).rejects.toThrow(
    'there is no docker CLI on PATH',
  )
})
