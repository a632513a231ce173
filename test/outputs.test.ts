import { expect, test } from 'vitest'
import { OUTPUTS, type Outputs, type PublishedPort, portsOutput, variablesOf } from '../src/outputs.ts'

const ports: readonly PublishedPort[] = [
  { node: 30080, protocol: 'TCP', host: 'docker', outer: 32801 },
  { node: 30053, protocol: 'UDP', host: 'docker', outer: 32802 },
  { node: 30053, protocol: 'TCP', host: 'fd00::2', outer: 32803 },
]
const outputs = Object.fromEntries(OUTPUTS.map(({ name }) => [name, `the ${name}`])) as Outputs

test('ports are JSON by NodePort; what is not TCP says so, and an IPv6 address has brackets', () => {
  expect(JSON.parse(portsOutput(ports))).toEqual({
    '30080': 'docker:32801',
    '30053/udp': 'docker:32802',
    '30053': '[fd00::2]:32803',
  })
  expect(portsOutput([])).toBe('{}')
})

test('every output is a variable, each port too, KUBECONFIG, and BUILDX_BUILDER', () => {
  expect(variablesOf(outputs, ports)).toEqual({
    KUBECONFIG: 'the kubeconfig',
    BUILDX_BUILDER: 'the builder',
    ...Object.fromEntries(
      OUTPUTS.map(({ name }) => [`KIND_IN_DIND_${name.replaceAll('-', '_').toUpperCase()}`, `the ${name}`]),
    ),
    KIND_IN_DIND_PORT_30080: 'docker:32801',
    KIND_IN_DIND_PORT_30053_UDP: 'docker:32802',
    KIND_IN_DIND_PORT_30053: '[fd00::2]:32803',
  })
})

test('without a builder of ours the job keeps its own', () => {
  expect(variablesOf({ ...outputs, builder: '' }, [])).not.toHaveProperty('BUILDX_BUILDER')
})
