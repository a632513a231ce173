import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { CoreV1Api, KubeConfig } from '@kubernetes/client-node'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ask } from '../../src/cluster/api.ts'
import { kubernetesVersion } from '../../src/cluster/ready.ts'

let server: Server
let kubeconfig: KubeConfig
/** What the server answers; undefined lets it take the question and say nothing. */
let answer: object | undefined

beforeEach(async () => {
  server = createServer((_, response) => {
    if (answer !== undefined)
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  kubeconfig = new KubeConfig()
  // client-node takes plain HTTP only so.
  kubeconfig.loadFromClusterAndUser({ name: 'c', server: url, skipTLSVerify: true }, { name: 'u' })
})

afterEach(async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
})

test('an answer is passed on', async () => {
  answer = { gitVersion: 'v1.34.0' }
  expect(await kubernetesVersion(kubeconfig)).toBe('v1.34.0')
})

test('no answer is not waited for without an end: it is said what was asked, where, and how long', async () => {
  answer = undefined
  const asked = ask(kubeconfig, CoreV1Api, 'what its nodes offer', api => api.listNode(), 200)
  await expect(asked).rejects.toThrow(
    /^the API server at http:\/\/127\.0\.0\.1:\d+ did not answer within 0\.2s \(what its nodes offer\); look at/,
  )
})

test('a refusal is passed on', async () => {
  server.closeAllConnections()
  await new Promise(resolve => server.close(resolve))
  await expect(kubernetesVersion(kubeconfig)).rejects.toThrow(/ECONNREFUSED/)
})
