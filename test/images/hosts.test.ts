import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { writeFiles } from '../../src/engine/containers.ts'
import type { Docker } from '../../src/engine/docker.ts'
import { writeInNodes } from '../../src/images/hosts.ts'
import type { Result } from '../../src/lib/run.ts'

test('files get into each node for its root alone, and nothing of them into an argument', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'hosts-'))
  const asked: string[] = []
  // The node is this machine: what docker exec would run there runs here.
  const run = async (args: readonly string[], options?: { readonly input?: string }): Promise<Result> => {
    asked.push(args.join(' '))
    const [program = '', ...rest] = args.slice(writeFiles('').indexOf('sh'))
    const { status, stderr } = spawnSync(program, rest, { input: options?.input ?? '', encoding: 'utf8' })
    expect(stderr).toBe('')
    return { code: status ?? 1, stdout: '', stderr }
  }
  const content = 'secret = "a \\"b\\" $c"\n[host."http://ä"]\n'
  const files = [`${folder}/docker.io/hosts.toml`, `${folder}/localhost:5001/hosts.toml`].map(path => ({
    path,
    content,
  }))
  try {
    await writeInNodes({ run } as unknown as Docker, ['c-control-plane', 'c-worker'], files)
    for (const { path } of files) {
      expect(readFileSync(path, 'utf8')).toBe(content)
      expect(statSync(path).mode & 0o777).toBe(0o600)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
  expect(asked).toHaveLength(2)
  expect(asked.join()).not.toContain('secret')
  expect(asked.join()).not.toContain(Buffer.from(content).toString('base64').slice(0, 12))
})

test('a node that does not take them is named', async () => {
  const docker = {
    run: async (args: readonly string[]) => {
      if (args.includes('c-worker')) throw new Error('no space left on device')
    },
  } as unknown as Docker
  await expect(writeInNodes(docker, ['c-control-plane', 'c-worker'], [{ path: '/a', content: '' }])).rejects.toThrow(
    /^the nodes cannot be told of registries: c-worker: no space left on device$/,
  )
})
