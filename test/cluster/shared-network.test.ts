/** A network that jobs share by its name: who leaves last removes it, never from under one that is about to use it. */
import { describe, expect, test } from 'vitest'
import { makeNetwork, makeRecord } from '../../src/cluster/create.ts'
import { removeCluster } from '../../src/cluster/remove.ts'
import type { Docker } from '../../src/engine/docker.ts'
import type { Result } from '../../src/lib/run.ts'
import { LABEL, type Plan } from '../../src/plan.ts'
import { dockerThat } from '../answers.ts'
import { aPlan } from '../builders.ts'

const planOf = (name: string, unique: string): Plan => aPlan({ options: { name, network: 'ci' }, unique })
const leaving = planOf('leaving', '11111111')
const coming = planOf('coming', '22222222')

/** An engine with volumes and networks, as far as these stories need it. */
function engine() {
  const volumes = new Map<string, Record<string, string>>()
  const networks = new Map<string, Record<string, string>>()
  const labelsIn = (args: readonly string[]): Record<string, string> =>
    Object.fromEntries(
      args.flatMap((arg, index) => (args[index - 1] === '--label' ? [arg.split(/=(.*)/s, 2) as [string, string]] : [])),
    )
  const matching = (things: typeof volumes, args: readonly string[]): string[] =>
    [...things]
      .filter(([name, labels]) =>
        args
          .flatMap(arg => arg.match(/^--filter=(\w+)=(.*)$/)?.slice(1) ?? [])
          .every((value, index, all) => {
            if (index % 2 === 0) return true
            if (all[index - 1] === 'name') return new RegExp(value).test(name)
            const [key = '', wanted] = value.split(/=(.*)/s, 2)
            return wanted === undefined || wanted === '' ? key in labels : labels[key] === wanted
          }),
      )
      .map(([name]) => name)
  const ok = (lines: readonly string[] = []): Result => ({
    code: 0,
    stdout: lines.map(line => `${line}\n`).join(''),
    stderr: '',
  })
  const no = (stderr: string): Result => ({ code: 1, stdout: '', stderr })

  const answer = (args: readonly string[]): Result => {
    const [what, verb] = args
    const last = args.at(-1) ?? ''
    const things = what === 'volume' ? volumes : what === 'network' ? networks : undefined
    if (things === undefined) return ok()
    if (verb === 'ls') return ok(matching(things, args))
    if (verb === 'inspect') {
      const labels = things.get(last)
      return labels === undefined ? no(`no such ${what}: ${last} not found`) : ok([JSON.stringify(labels)])
    }
    if (verb === 'create') {
      if (things.has(last)) return what === 'volume' ? ok([last]) : no(`network with name ${last} already exists`)
      things.set(last, labelsIn(args))
      return ok([last])
    }
    return things.delete(last) || args.includes('--force') ? ok() : no(`${what} ${last} not found`)
  }

  /** @param before runs before each command, with the number of those before it */
  const client = (before: (index: number, args: readonly string[]) => unknown = () => {}): Docker => {
    let count = 0
    const ask = async (args: readonly string[]): Promise<Result> => {
      // The engine's client removes one after the other, and is done with those that could go.
      const names = args[1] === 'rm' ? args.filter((arg, index) => index > 1 && !arg.startsWith('--')) : []
      const steps = names.length > 0 ? names.map(name => [...args.slice(0, 2), '--force', name]) : [args]
      const results: Result[] = []
      for (const step of steps) {
        await before(count++, step)
        results.push(answer(args.includes('--force') ? step : step.filter(arg => arg !== '--force')))
      }
      return results.find(({ code }) => code !== 0) ?? (results.at(-1) as Result)
    }
    return dockerThat(ask)
  }
  return { client, volumes, networks }
}

async function make(docker: Docker, plan: Plan): Promise<void> {
  await makeRecord(docker, plan)
  await makeNetwork(docker, plan, undefined)
}

/** How many commands a post that leaves the network has. */
async function length(): Promise<number> {
  const { client } = engine()
  await make(client(), leaving)
  let commands = 0
  await removeCluster(
    client(() => commands++),
    leaving,
  )
  return commands
}

describe('a post that leaves a network beside a pre that comes', () => {
  test('leaves it to the other or removes it in time, in whichever order their commands come', async () => {
    const commands = await length()
    const counts = Array.from({ length: commands + 1 }, (_, count) => count)
    // The pre's record comes before this command of the post, and its look at the network before that one.
    const moments = counts.flatMap(record => counts.filter(look => look >= record).map(look => [record, look] as const))
    await Promise.all(moments.map(([record, look]) => meet(record, look, commands)))
  })

  async function meet(record: number, look: number, commands: number): Promise<void> {
    const { client, networks, volumes } = engine()
    await make(client(), leaving)
    let pre: Promise<void> | undefined
    /** The pre goes on until it is done, or waits for the post. */
    const goOn = (): Promise<void> =>
      new Promise(resolve => {
        pre = makeNetwork(
          client((index, args) => index > 0 && args[0] === 'volume' && resolve()),
          coming,
          undefined,
        )
        pre.then(resolve, resolve)
      })
    const act = async (index: number): Promise<void> => {
      if (index === record) await makeRecord(client(), coming)
      if (index === look) await goOn()
    }
    await removeCluster(client(act), leaving)
    await act(commands)
    await pre
    const moment = `record before command ${record}, look before ${look}`
    expect([...networks.keys()], moment).toEqual(['ci'])
    expect([...volumes.keys()], moment).toEqual([coming.record])

    await removeCluster(client(), coming)
    expect([networks.size, volumes.size], moment).toEqual([0, 0])
  }

  test('that was ended between its last two commands leaves no mark when it is run again', async () => {
    const { client, volumes } = engine()
    volumes.set(`${leaving.record}-leaving`, { [LABEL.leaving]: 'ci' })
    expect(await removeCluster(client(), leaving)).toBeUndefined()
    expect(volumes.size).toBe(0)
  })

  test('says that it stays where the other has nothing on it yet', async () => {
    const { client } = engine()
    await make(client(), leaving)
    await make(client(), coming)
    expect(await removeCluster(client(), leaving)).toBe('leaving (0 nodes; the network ci stays, others are on it)')
    expect(await removeCluster(client(), coming)).toBe('coming (0 nodes and its network)')
  })

  test('that was ended half-way does not hold up those that come after it for ever', async () => {
    const { client, volumes } = engine()
    volumes.set('mark', { [LABEL.leaving]: 'ci' })
    await makeRecord(client(), coming)
    await makeNetwork(client(), coming, undefined, 50)
    expect([...volumes.keys()]).toEqual([coming.record])
  })
})

describe('two posts that leave a network at the same time', () => {
  test('remove it, in whichever order their commands come', async () => {
    const commands = await length()
    const counts = Array.from({ length: commands + 2 }, (_, count) => count)
    const orders = counts.flatMap(first =>
      counts.filter(then => then >= first).flatMap(then => counts.map(middle => ({ first, middle, then }))),
    )
    await Promise.all(orders.map(leaveTogether))
  })

  /** The second post begins before the first one's command `first`, stops before its own `middle` and goes on at `then`. */
  async function leaveTogether(order: { first: number; middle: number; then: number }): Promise<void> {
    const { client, networks, volumes } = engine()
    await make(client(), leaving)
    await make(client(), coming)
    let goOn = (): void => {}
    const mayGoOn = new Promise<void>(resolve => {
      goOn = resolve
    })
    let second: Promise<unknown> | undefined
    const begin = (): Promise<unknown> =>
      new Promise(resolve => {
        const wait = (index: number): unknown => {
          if (index !== order.middle) return
          resolve(undefined)
          return mayGoOn
        }
        second = removeCluster(client(wait), coming)
        second.then(resolve, resolve)
      })
    const act = async (index: number): Promise<void> => {
      if (index === order.first) await begin()
      if (index !== order.then) return
      goOn()
      await second
    }
    await removeCluster(client(act), leaving)
    if (second === undefined) await begin()
    goOn()
    await second
    expect([networks.size, volumes.size], JSON.stringify(order)).toEqual([0, 0])
  }
})
