import { expect, test } from 'vitest'
import { thawLate } from '../../src/cluster/thaw.ts'
import type { Docker } from '../../src/engine/docker.ts'

/** An engine that notes what it is asked. */
function engine(): { docker: Docker; asked: string[][]; thawed: Promise<void> } {
  const asked: string[][] = []
  let done = (): void => {}
  const thawed = new Promise<void>(resolve => {
    done = resolve
  })
  const run: Docker['run'] = async args => {
    asked.push([...args])
    if (args[0] === 'run') done()
    return { code: 0, stdout: 'sha256:image\n', stderr: '' }
  }
  return { docker: { run } as Docker, asked, thawed }
}

test('nodes that are long in going are thawed, by their own image and their whole ids', async () => {
  const { docker, asked, thawed } = engine()
  thawLate(docker, ['id-1', 'id-2'], 1)
  await thawed
  expect(asked[0]).toEqual(['container', 'inspect', '--format={{.Image}}', 'id-1'])
  expect(asked[1]).toContain('sha256:image')
  expect(asked[1]?.slice(-3)).toEqual(['sh', 'id-1', 'id-2'])
})

test('nodes that are gone in time are left alone', async () => {
  const { docker, asked } = engine()
  thawLate(docker, ['id-1'], 20)()
  await new Promise(resolve => setTimeout(resolve, 60))
  expect(asked).toEqual([])
})

test('an engine that does not let it look fails nothing', async () => {
  const refused = new Promise<void>(resolve => {
    const docker = {
      run: async () => {
        setTimeout(resolve, 1)
        throw new Error('no')
      },
    } as unknown as Docker
    thawLate(docker, ['id-1'], 1)
  })
  await refused
})
