import { expect, test } from 'vitest'
import { tellFacts, tellKept } from '../../src/report/facts.ts'
import { aPlan } from '../builders.ts'

const GIB = 1024 ** 3

function told(plan = aPlan({ options: { name: 'c' } }), isReady = true) {
  const lines: string[] = []
  const warnings: string[] = []
  const host = { info: (line: string) => void lines.push(line), warning: (line: string) => void warnings.push(line) }
  const connection = {
    server: 'https://docker:32800',
    ports: [
      { node: 30080, protocol: 'TCP', host: 'docker', outer: 32801 },
      { node: 30053, protocol: 'UDP', host: 'fd00::2', outer: 32802 },
    ] as const,
    registry: plan.registry === undefined ? undefined : { engine: 'localhost:25001', step: 'docker:25001' },
  }
  const capacity = [
    { name: 'c-control-plane', cpus: 1, memory: 2 * GIB },
    { name: 'c-worker', cpus: 1.5, memory: 3.5 * GIB },
  ]
  tellFacts(host, plan, connection, 'v1.34.4', capacity, isReady)
  return { lines, warnings }
}

test('the log closes with where the cluster is, and what pods can get on each node and in all', () => {
  expect(told()).toEqual({
    lines: [
      'Kubernetes v1.34.4 is ready: context kind-c, https://docker:32800',
      'NodePort 30080 is at docker:32801',
      'NodePort 30053/udp is at [fd00::2]:32802',
      'Pods on c-control-plane can get 1 CPUs and 2 GiB',
      'Pods on c-worker can get 1.5 CPUs and 3.5 GiB',
      'The engine has 2 CPUs and 4 GiB in all',
      'The kubeconfig is /job/c.01234567/kubeconfig',
    ],
    warnings: [],
  })
})

test('the log says by which names the registry is reached, and a kept one goes with its cluster', () => {
  const plan = aPlan({ options: { name: 'c', keep: true, registry: { port: undefined } } })
  const { lines, warnings } = told(plan)
  expect(lines).toContain(
    'The registry is localhost:25001 for docker push, and docker:25001 for other tools of this job; pods pull by both',
  )
  expect(warnings[0]).toContain(
    'docker rm -fv $(docker ps -aq --filter label=io.x-k8s.kind.cluster=c) $(docker ps -aq --filter label=kind-in-dind.cluster=c) &&',
  )
})

test('a cluster that was not waited for is not called ready', () => {
  expect(told(undefined, false).lines[0]).toMatch(/^Kubernetes v1\.34\.4 is up, and was not waited for \(wait: 0\): /)
})

test('a cluster that is kept is a warning with the command that removes it', () => {
  const plan = aPlan({ options: { name: 'c', keep: true } })
  const { warnings } = told(plan)
  expect(warnings).toHaveLength(1)
  tellKept({ warning: line => expect(line).toBe(warnings[0]) }, plan)
  expect(warnings[0]).toMatch(/^keep: the cluster c stays up at tcp:\/\/docker:2375 /)
  // A network that the user had before carries no label, and stays.
  expect(warnings[0]).toMatch(
    /docker rm -fv \$\(docker ps -aq --filter label=io\.x-k8s\.kind\.cluster=c\) && docker network prune --force --filter label=kind-in-dind\.cluster=c && docker volume rm kind-in-dind-c$/,
  )
})
