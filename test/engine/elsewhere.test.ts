import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { enginesWith } from '../../src/engine/elsewhere.ts'

const IMAGE = 'registry.example:5000/team/app:ci'
const asked: string[] = []
let server: http.Server
let address: string

// An engine that has one image.
beforeAll(async () => {
  server = http.createServer(({ method, url }, response) => {
    asked.push(`${method} ${url}`)
    const known = url === `/images/${IMAGE}/json`
    response.writeHead(known ? 200 : 404).end(JSON.stringify(known ? { Id: 'sha256:1' } : { message: 'No such image' }))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  address = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`
})

afterAll(() => server.close())

const look = (reference: string, engine: string): Promise<readonly string[]> =>
  enginesWith(
    reference,
    { address: engine },
    { env: { DOCKER_HOST: address }, resolve: async () => [], readFile: () => undefined, exists: () => false },
  )

test('an engine that has the image is named, with how it was found; it is only read', async () => {
  expect(await look(IMAGE, 'tcp://docker:2375')).toEqual([`${address} (DOCKER_HOST)`])
  expect(asked).toEqual([`GET /images/${IMAGE}/json`])
})

test('one that lacks it is not, nor is the engine itself', async () => {
  expect(await look('team/other:1', 'tcp://docker:2375')).toEqual([])
  expect(await look(IMAGE, address)).toEqual([])
})
