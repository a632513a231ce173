import { describe, expect, test } from 'vitest'
import { dockerAt } from '../../src/engine/docker.ts'
import { containerIds, findOwnContainer } from '../../src/engine/own-container.ts'
import type { Argv, Runner } from '../../src/lib/run.ts'

const id = '4f66ad9b0b2e'.padEnd(64, '0')
const mounted = `1016 1002 254:1 /var/lib/docker/containers/${id}/hostname /etc/hostname rw,relatime - ext4 /dev/vda rw\n`

test.each<[string, string, string, readonly string[]]>([
  ['Docker mounts a file from a folder with the id', 'build-box', mounted, [id]],
  ['the host name is the short id of that very container', id.slice(0, 12), mounted, [id]],
  ['the host name alone', '0123456789ab', '', ['0123456789ab']],
  ['a machine', 'build-box', '25 1 8:1 / / rw - ext4 /dev/sda1 rw\n', []],
])('an id is told by: %s', (_, hostname, mountinfo, ids) => {
  expect(containerIds({ hostname, mountinfo })).toEqual(ids)
})

describe('the own container on an engine', () => {
  const dockerThatKnows = (known: Readonly<Record<string, string>>): ReturnType<typeof dockerAt> => {
    const runner = {
      try: async (argv: Argv) => {
        const stdout = known[argv.at(-1) ?? '']
        return stdout === undefined
          ? { code: 1, stdout: '', stderr: 'No such container' }
          : { code: 0, stdout, stderr: '' }
      },
    } as Runner
    return dockerAt({ env: {}, aroundProxy: {} }, runner)
  }
  const traces = { hostname: 'build-box', mountinfo: mounted }

  test.each<[string, string, string | undefined]>([
    ['on a network of its own', `{"id":"${id}","mode":"github_network"}`, id],
    ["on the machine's network, where it reaches published ports anyway", `{"id":"${id}","mode":"host"}`, undefined],
    ["in another container's network", `{"id":"${id}","mode":"container:abc"}`, 'abc'],
  ])('%s', async (_, inspected, found) => {
    await expect(findOwnContainer(dockerThatKnows({ [id]: inspected }), traces)).resolves.toBe(found)
  })

  test('is none where another engine runs it', async () => {
    await expect(findOwnContainer(dockerThatKnows({}), traces)).resolves.toBeUndefined()
  })
})
