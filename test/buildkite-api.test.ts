import { afterEach, beforeEach, expect, test } from 'vitest'
import { type BuildkiteApi, startBuildkiteApi } from './buildkite-api.ts'

let api: BuildkiteApi
beforeEach(async () => {
  api = await startBuildkiteApi()
})
afterEach(() => api.close())

async function post(path: string, body?: unknown, method = 'POST', token = 'Token t'): Promise<[number, unknown]> {
  const response = await fetch(`${api.endpoint}/${path}`, {
    method,
    headers: { Authorization: token },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  return [response.status, text === '' ? undefined : JSON.parse(text)]
}

test('meta-data: set, get, exists, keys', async () => {
  expect(await post('jobs/j/data/get', { key: 'a' })).toEqual([404, { message: 'No key found' }])
  expect(await post('jobs/j/data/set', { key: 'a', value: '1' })).toEqual([200, undefined])
  expect(await post('builds/b/data/get', { key: 'a' })).toEqual([200, { key: 'a', value: '1' }])
  expect(await post('jobs/j/data/exists', { key: 'b' })).toEqual([200, { exists: false }])
  expect(await post('jobs/j/data/keys')).toEqual([200, ['a']])
})

test('annotations: replaced or appended by context, and removed', async () => {
  await post('jobs/j/annotations', { body: 'one', context: 'c', style: 'error' })
  await post('jobs/j/annotations', { body: ' two', context: 'c', style: 'error', append: true })
  expect([...api.annotations.values()]).toEqual([{ body: 'one two', context: 'c', style: 'error' }])
  await post('jobs/j/annotations', { body: 'three', context: 'c', style: 'info' })
  expect(api.annotations.get('c')?.body).toBe('three')
  expect((await post('jobs/j/annotations/c', undefined, 'DELETE'))[0]).toBe(200)
  expect(api.annotations.size).toBe(0)
})

test('what is not played is a 404 that the test can see, and no token is a 401', async () => {
  expect((await post('jobs/j/unknown'))[0]).toBe(404)
  expect((await post('jobs/j/data/keys', undefined, 'POST', ''))[0]).toBe(401)
  expect(api.requests).toEqual([
    { method: 'POST', path: '/v3/jobs/j/unknown', token: 't', body: undefined },
    { method: 'POST', path: '/v3/jobs/j/data/keys', token: undefined, body: undefined },
  ])
})

test('artifacts: announced, sent as a form to where the answer says, and there when reported as finished', async () => {
  const [status, answer] = await post('jobs/j/artifacts', { artifacts: [{ path: 'a/b.log' }, { path: 'c.log' }] })
  const { artifact_ids, upload_instructions } = answer as {
    artifact_ids: string[]
    upload_instructions: { data: { key: string }; action: { url: string; path: string; file_input: string } }
  }
  expect([status, artifact_ids.length]).toEqual([201, 2])
  const { action } = upload_instructions
  for (const path of ['a/b.log', 'c.log']) {
    const form = new FormData()
    form.append('key', path)
    form.append(action.file_input, new Blob([`content\r\nof ${path}`]), path)
    expect((await fetch(new URL(action.path, action.url), { method: 'POST', body: form })).status).toBe(204)
  }
  expect(api.artifacts.size).toBe(0)
  await post('jobs/j/artifacts', { artifacts: [{ id: artifact_ids[0], state: 'finished' }] }, 'PUT')
  expect([...api.artifacts]).toEqual([['j/a/b.log', 'content\r\nof a/b.log']])
})
