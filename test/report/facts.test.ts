import { expect, test } from 'vitest'
import { closingBlock, noteAddresses, notePlan, noteReady, tellKept } from '../../src/report/facts.ts'
import { newReport } from '../../src/report/report.ts'
import { aPlan } from '../builders.ts'

const GIB = 1024 ** 3

function told(isReady = true, registry = false) {
  const plan = aPlan({ options: { name: 'c' } })
  const report = newReport()
  notePlan(report, plan, 'v0.33.0')
  noteAddresses(report, plan, {
    server: 'https://docker:32800',
    ports: [
      { node: 30080, protocol: 'TCP', host: 'docker', outer: 32801 },
      { node: 30053, protocol: 'UDP', host: 'fd00::2', outer: 32802 },
    ],
    registry: registry ? { engine: 'localhost:25001', step: 'docker:25001' } : undefined,
  })
  const capacity = [
    { name: 'c-control-plane', cpus: 1, memory: 2 * GIB },
    { name: 'c-worker', cpus: 1.5, memory: 3.5 * GIB },
  ]
  noteReady(report, { version: 'v1.34.4', capacity }, isReady)
  return closingBlock(report, plan, 41_234)
}

test('the log closes with where the cluster is, what pods can get on each node and in all, and how to look inside', () => {
  expect(told()).toEqual({
    title: 'Kubernetes v1.34.4 is ready after 41.2s',
    lines: [
      '  context                      kind-c',
      '  API server                   https://docker:32800',
      '  NodePort 30080               docker:32801',
      '  NodePort 30053/udp           [fd00::2]:32802',
      '  kubeconfig                   /job/c.01234567/kubeconfig',
      '  for pods on c-control-plane  1 CPU and 2 GiB',
      '  for pods on c-worker         1.5 CPUs and 3.5 GiB',
      '  the engine in all            2 CPUs and 4 GiB',
      '  look inside                  kubectl get pods -A',
      '                               docker exec -it c-control-plane crictl ps',
    ],
  })
})

test('the log says by which names the registry is reached, and a kept one goes with its cluster', () => {
  expect(told(true, true).lines.filter(line => line.includes('registry'))).toEqual([
    '  registry, for docker push    localhost:25001',
    '  registry, for other tools    docker:25001',
  ])
  const warnings: string[] = []
  const plan = aPlan({ options: { name: 'c', keep: true, registry: { port: undefined } } })
  tellKept({ warning: line => void warnings.push(line) }, plan)
  expect(warnings[0]).toContain(
    'docker rm -fv $(docker ps -aq --filter label=io.x-k8s.kind.cluster=c) $(docker ps -aq --filter label=kind-in-dind.cluster=c) &&',
  )
})

test('a cluster that was not waited for is not called ready', () => {
  expect(told(false).title).toBe('Kubernetes v1.34.4 is up, and was not waited for (wait: 0), after 41.2s')
})

test('a cluster that is kept is a warning with the command that removes it', () => {
  const plan = aPlan({ options: { name: 'c', keep: true } })
  const warnings: string[] = []
  tellKept({ warning: line => void warnings.push(line) }, plan)
  expect(warnings[0]).toMatch(/^keep: the cluster c stays up at tcp:\/\/docker:2375 /)
  // A network that the user had before carries no label, and stays.
  expect(warnings[0]).toMatch(
    /docker rm -fv \$\(docker ps -aq --filter label=io\.x-k8s\.kind\.cluster=c\) && docker network prune --force --filter label=kind-in-dind\.cluster=c && docker volume rm kind-in-dind-c$/,
  )
})
