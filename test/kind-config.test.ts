import { expect, test } from 'vitest'
import { readKindConfig } from '../src/kind-config.ts'

const CLUSTER = 'kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n'

test('anchors and merge keys are read as kind reads them', () => {
  const yaml = `${CLUSTER}nodes:\n- &first {role: control-plane, labels: {tier: one}}\n- {<<: *first, role: worker}\n`
  expect(readKindConfig(yaml).nodes).toEqual([
    { role: 'control-plane', labels: { tier: 'one' } },
    { role: 'worker', labels: { tier: 'one' } },
  ])
})

test('what is null is absent', () => {
  expect(readKindConfig(`${CLUSTER}nodes:\nnetworking:\n  podSubnet:\n  ipFamily: dual\n`)).toEqual({
    kind: 'Cluster',
    apiVersion: 'kind.x-k8s.io/v1alpha4',
    networking: { ipFamily: 'dual' },
  })
})

test.each([
  ['networkng: {}', 'has networkng, which kind does not know; a Cluster has kind, apiVersion, name, nodes, networking'],
  ['networking: text', 'has networking that is no mapping'],
  ['networking: {apiServerPort: "1"}', 'has networking.apiServerPort that is no number'],
  ['nodes: [{labels: []}]', 'has nodes[0].labels that is no mapping'],
  ['kubeadmConfigPatches: text', 'has kubeadmConfigPatches that is no list of texts'],
  ['kubeadmConfigPatches: [{a: 1}]', 'has kubeadmConfigPatches that is no list of texts'],
  ['nodes: [{extraMounts: [text]}]', 'has nodes[0].extraMounts with something that is no mapping'],
])('%s is refused before anything is made', (line, sentence) => {
  expect(() => readKindConfig(CLUSTER + line)).toThrow(sentence)
})
