import { describe, expect, test } from 'vitest'
import { containerLimits, judgeCapacity, RESERVE, reservationPatch, smallest } from '../../src/cluster/capacity.ts'
import { anEngine, anOptions } from '../builders.ts'

const MIB = 1024 ** 2
const GIB = 1024 ** 3
/** Four CPUs, 8 GiB. */
const engine = anEngine({ cpus: 4, memory: 8 * GIB })

interface Asked {
  readonly cpus?: number
  readonly memory?: number
}
const asked = (given: Asked) => anOptions(given)

describe('what nodes shall offer', () => {
  test.each<[string, Asked, number]>([
    ['nothing said', {}, 3],
    ['all that the engine has', { cpus: 4, memory: 8 * GIB }, 1],
    ['the least on which the control plane lives', { cpus: 1, memory: GIB }, 1],
    ['each of several nodes has its part', { cpus: 1, memory: 2 * GIB }, 4],
  ])('%s: is fine', (_, given, nodes) => {
    expect(judgeCapacity(asked(given), nodes, engine)).toEqual({ stops: [], warnings: [] })
  })

  test.each<[string, Asked, number, string[]]>([
    ['more CPUs than there are', { cpus: 4.5 }, 1, ["cpus: 4.5 is more than the engine's 4"]],
    ['more memory than there is', { memory: 9 * GIB }, 1, ["memory: 9 GiB is more than the engine's 8 GiB"]],
    [
      'more memory than there is for all nodes together',
      { memory: 3 * GIB },
      3,
      ["memory: 3 GiB for each of 3 nodes is more than the engine's 8 GiB"],
    ],
    [
      'too few CPUs',
      { cpus: 0.5 },
      1,
      ['cpus: 0.5 is too little for the control plane, whose pods alone ask for 0.95; give at least 1'],
    ],
    [
      'too little memory',
      { memory: 512 * MIB },
      2,
      ['memory: 512 MiB is too little for the control plane to live; give at least 1 GiB'],
    ],
    [
      'both',
      { cpus: 8, memory: 100 * MIB },
      1,
      [
        "cpus: 8 is more than the engine's 4",
        'memory: 100 MiB is too little for the control plane to live; give at least 1 GiB',
      ],
    ],
  ])('%s: is refused with the numbers', (_, given, nodes, stops) => {
    expect(judgeCapacity(asked(given), nodes, engine).stops).toEqual(stops)
  })

  test('CPUs that nodes have to share are a warning', () => {
    expect(judgeCapacity(asked({ cpus: 2 }), 3, engine)).toEqual({
      stops: [],
      warnings: [
        "cpus: 2 for each of 3 nodes are more than the engine's 4: pods that compute at the same time share them",
      ],
    })
  })
})

describe('the kubelet', () => {
  test.each<[Asked, object | undefined]>([
    [{}, undefined],
    [{ cpus: 1.5 }, { cpu: '2500m' }],
    [{ cpus: 0.1 + 0.2 + 1 }, { cpu: '2700m' }],
    [{ cpus: 4 }, { cpu: '0m' }],
    [{ memory: 3 * GIB }, { memory: `${5 * GIB}` }],
    [{ memory: 2.5e9 }, { memory: `${8 * GIB - 2.5e9}` }],
    [
      { cpus: 1, memory: 8 * GIB },
      { cpu: '3000m', memory: '0' },
    ],
  ])('reserves what is left of the engine: %j', (given, reserved) => {
    const patch = reservationPatch(asked(given), engine)
    expect(patch === undefined ? undefined : JSON.parse(patch)).toEqual(
      // Without an apiVersion it applies whatever the Kubernetes version is.
      reserved && { kind: 'KubeletConfiguration', systemReserved: reserved },
    )
  })
})

describe("the node's container", () => {
  test.each<[Asked, Asked]>([
    [{}, {}],
    [{ cpus: 2 }, { cpus: 2 + RESERVE.cpus }],
    [{ memory: 2 * GIB }, { memory: 2 * GIB + RESERVE.memory }],
    // Never more than there is: the engine refuses that.
    [
      { cpus: 4, memory: 8 * GIB },
      { cpus: 4, memory: 8 * GIB },
    ],
  ])('is held to what its pods get, and the reserve: %j', (given, limits) => {
    expect(containerLimits(asked(given), engine)).toEqual(limits)
  })
})

test('a pod can count on the least of every node', () => {
  expect(
    smallest([
      { name: 'a', cpus: 2, memory: 4 * GIB },
      { name: 'b', cpus: 1, memory: 8 * GIB },
    ]),
  ).toEqual({ cpus: 1, memory: 4 * GIB })
})
