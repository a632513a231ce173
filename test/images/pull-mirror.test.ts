import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Docker } from '../../src/engine/docker.ts'
import { mirrored, pullFromMirror } from '../../src/images/pull-mirror.ts'
import { parseReference } from '../../src/images/reference.ts'
import type { Result } from '../../src/lib/run.ts'
import { type Mirror, readMirror } from '../../src/registry-mirrors.ts'

const mirror = (line: string): Mirror => readMirror(line, () => undefined)
const DIGEST = `sha256:${'a'.repeat(64)}`

test.each([
  ['registry:3', 'docker.io=https://mirror.example', 'mirror.example/library/registry:3'],
  ['kindest/node', 'docker.io=https://mirror.example:5000/hub', 'mirror.example:5000/hub/kindest/node:latest'],
  [`kindest/node:v1@${DIGEST}`, 'docker.io=http://mirror', `mirror:80/kindest/node@${DIGEST}`],
  ['quay.io/a/b:c', 'quay.io=https://mirror/v2/q', 'mirror:443/q/a/b:c'],
])('%s comes from %s as %s', (reference, line, name) => {
  expect(mirrored(parseReference(reference), mirror(line))).toBe(name)
})

/** An engine that has some images, and registries that give some. */
function engine(has: string[], given: readonly string[]) {
  const asked: string[] = []
  const ok: Result = { code: 0, stdout: '', stderr: '' }
  const no = (stderr: string): Result => ({ code: 1, stdout: '', stderr })
  const answer = async (args: readonly string[]): Promise<Result> => {
    asked.push(args.join(' '))
    const name = args.at(-1) ?? ''
    switch (args.find(arg => !arg.startsWith('--config='))) {
      case 'pull':
        if (!given.includes(name)) return no('Error response from daemon: manifest unknown')
        if (!has.includes(name)) has.push(name)
        return ok
      case 'tag':
        if (!has.includes(args.at(-2) ?? '')) return no('No such image')
        has.push(name)
        return ok
      case 'rmi':
        has.splice(has.indexOf(name), 1)
        return ok
      default:
        return has.includes(name) ? ok : no('No such image')
    }
  }
  return { docker: { try: answer, run: answer } as unknown as Docker, asked, has }
}

describe('the engine pulls from mirrors', () => {
  const world = (lines: readonly string[], said: string[] = [], folder = '/nowhere') => ({
    ...{ mirrors: lines.map(mirror), folder },
    info: (line: string) => void said.push(line),
  })

  test('and has the image by the name that was asked for, and by no other', async () => {
    const { docker, has } = engine([], ['m.example/library/app:1'])
    const lines = ['quay.io=https://q.example', 'docker.io=https://m.example']
    expect(await pullFromMirror(docker, parseReference('app:1'), world(lines), 1)).toBe('app:1')
    expect(has).toEqual(['app:1'])
  })

  test("and keeps the mirror's name where it had that before", async () => {
    const { docker, has } = engine(['m.example/library/app:1'], ['m.example/library/app:1'])
    await pullFromMirror(docker, parseReference('app:1'), world(['docker.io=https://m.example']), 1)
    expect(has).toEqual(['m.example/library/app:1', 'app:1'])
  })

  test('in their order, and says which did not give it', async () => {
    const said: string[] = []
    const { docker } = engine([], ['two.example/library/app:1'])
    const lines = ['docker.io=https://one.example', 'docker.io=https://two.example']
    expect(await pullFromMirror(docker, parseReference('app:1'), world(lines, said), 1)).toBe('app:1')
    expect(said).toEqual(['The mirror one.example does not give the engine app:1: manifest unknown'])
  })

  test('and has none where they have none, or are for other registries', async () => {
    const { docker, asked } = engine([], [])
    expect(await pullFromMirror(docker, parseReference('app:1'), world(['docker.io=https://m.example']), 1)).toBe(
      undefined,
    )
    asked.length = 0
    expect(await pullFromMirror(docker, parseReference('app:1'), world(['quay.io=https://m.example']), 1)).toBe(
      undefined,
    )
    expect(asked).toEqual([])
  })

  test("and has what a digest names by the mirror's name", async () => {
    const { docker, has } = engine([], [`m.example/kindest/node@${DIGEST}`])
    const reference = parseReference(`kindest/node:v1@${DIGEST}`)
    const name = await pullFromMirror(docker, reference, world(['docker.io=https://m.example']), 1)
    expect(has).toEqual([name])
  })

  test('with credentials that are in a file for this user alone, for as long as it takes, and in no argument', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'pull-'))
    try {
      const { docker, asked } = engine([], ['m.example:5000/library/app:1'])
      const pulling: Docker = {
        ...docker,
        try: async args => {
          const config = args[0]?.startsWith('--config=') ? args[0].slice('--config='.length) : undefined
          if (config !== undefined) {
            expect(statSync(config).mode & 0o777).toBe(0o700)
            expect(statSync(`${config}/config.json`).mode & 0o777).toBe(0o600)
            const auth = Buffer.from('me:p@ss').toString('base64')
            expect(JSON.parse(readFileSync(`${config}/config.json`, 'utf8'))).toEqual({
              auths: { 'm.example:5000': { auth } },
            })
          }
          return docker.try(args)
        },
      }
      const lines = ['docker.io=http://me:p%40ss@m.example:5000']
      expect(await pullFromMirror(pulling, parseReference('app:1'), world(lines, [], folder), 1)).toBe('app:1')
      expect(asked.filter(line => line.includes(' pull '))).toEqual([
        expect.stringMatching(/^--config=\S+ pull --quiet -- m\.example:5000\/library\/app:1$/),
      ])
      expect(asked.join()).not.toMatch(/p@ss|p%40ss/)
      expect(readdirSync(folder)).toEqual([])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})
