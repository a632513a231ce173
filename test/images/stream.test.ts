import { describe, expect, test } from 'vitest'
import { dockerAt } from '../../src/engine/docker.ts'
import { streamImages } from '../../src/images/stream.ts'
import { type Argv, createRunner, type Runner } from '../../src/lib/run.ts'

/** A docker whose `save` and `exec` are small shell scripts; $NODE is the node that is imported into. */
function dockerOf(save: string, load: string): ReturnType<typeof dockerAt> {
  const real = createRunner({ env: process.env })
  const replaced: Runner = {
    ...real,
    start: (argv: Argv) => {
      const [, verb, , node = ''] = argv
      return verb === 'save'
        ? real.start(['/bin/sh', '-c', save])
        : real.start(['/bin/sh', '-c', load], { env: { NODE: node } })
    },
  }
  return dockerAt({ env: {}, aroundProxy: {} }, replaced)
}

const MEGABYTES = 5
const save = `head -c ${MEGABYTES}000000 /dev/zero`
const whole = `[ "$(wc -c)" = ${MEGABYTES}000000 ]`

describe('streaming images into nodes', () => {
  test('one read of the engine reaches every node whole', async () => {
    await expect(streamImages(dockerOf(save, whole), ['a:1', 'b:1'], ['one', 'two', 'three'])).resolves.toBe(
      MEGABYTES * 1e6,
    )
  })

  test('without images the engine is not asked', async () => {
    await expect(streamImages(dockerOf('exit 1', 'exit 1'), [], ['one'])).resolves.toBe(0)
  })

  test('a node that dies is named, and the others get all', async () => {
    const load = `if [ "$NODE" = two ]; then head -c 1000 >/dev/null; echo broken >&2; exit 3; fi; ${whole}`
    await expect(streamImages(dockerOf(save, load), ['a:1'], ['one', 'two'])).rejects.toThrow(
      /^images: the import failed in two: .*broken$/,
    )
  })

  test('when every node dies it ends, and each is named', async () => {
    const load = 'head -c 1000 >/dev/null; echo broken in $NODE >&2; exit 3'
    const failed = streamImages(dockerOf(save, load), ['a:1'], ['one', 'two'])
    await expect(failed).rejects.toThrow(/one: .*broken in one; two: .*broken in two/)
  })

  test('an engine that breaks off is the cause, and no node takes the half for the whole', async () => {
    const load = 'trap "echo ended >&2; exit 9" TERM; cat >/dev/null; echo imported'
    const failed = streamImages(dockerOf('head -c 1000 /dev/zero; echo lost >&2; exit 1', load), ['a:1'], ['one'])
    await expect(failed).rejects.toThrow(/^images: the engine does not give them out: .*lost$/)
  })
})
