import { describe, expect, test } from 'vitest'
import { scrubber, withoutSecrets } from '../../src/lib/scrub.ts'

const KEY = [
  '-----BEGIN RSA PRIVATE KEY-----',
  'MIIEpAIBAAKCAQEA1',
  'c3VwZXJzZWNyZXQ=',
  '-----END RSA PRIVATE KEY-----',
]
const scrub = scrubber([])

describe('what is a secret by its shape', () => {
  test.each([
    ['a private key', `before ${KEY.join('\n')} after`, 'before *** after'],
    ['a private key that was cut off', `before\n${KEY.slice(0, 2).join('\n')}`, 'before\n***'],
    ['a key in a kubeconfig', 'client-key-data: LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVk=', 'client-key-data: ***'],
    ['a token of a service account', 'got eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2ln-bmF0dXJl!', 'got ***!'],
    ['a bootstrap token', 'kubeadm join --token abcdef.0123456789abcdef x', 'kubeadm join --token *** x'],
    ['a certificate key', `--certificate-key ${'0af3'.repeat(16)} x`, '--certificate-key *** x'],
    ['a proxy with a password', '"HTTP_PROXY=http://joe:pw@proxy:3128"', '"HTTP_PROXY=http://***@proxy:3128"'],
    [
      'a URL that is signed',
      'GET https://blobs.example/a?X-Amz-Date=1&X-Amz-Signature=0af3&x=1, https://b.example/c?sv=2&sig=aB%2F: 403',
      'GET https://blobs.example/a?X-Amz-Date=1&X-Amz-Signature=***&x=1, https://b.example/c?sv=2&sig=***: 403',
    ],
    ['a header', 'Authorization: Bearer abc.def', 'Authorization: Bearer ***'],
    ['a header of curl', "-H 'authorization: Basic am9lOnB3'", "-H 'authorization: Basic ***'"],
    ['a variable', '"AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI",', '"AWS_SECRET_ACCESS_KEY=***",'],
    ['a variable, with a blank', 'DB_PASSWORD: hunter22 and more', 'DB_PASSWORD: *** and more'],
    ['a field of JSON', '{"password":"hunter22","user":"joe"}', '{"password":"***","user":"joe"}'],
    [
      'a registry login',
      '{"auths":{"reg.example":{"auth":"am9lOnB3MTIz"}}}',
      '{"auths":{"reg.example":{"auth":"***"}}}',
    ],
  ])('%s', (_, text, left) => {
    expect(scrub(text)).toBe(left)
  })

  test.each([
    'Started kubelet.service - kubelet: The Kubernetes Node Agent.',
    'level=info msg="StartContainer for 0af30af30af30af30af30af30af30af30af30af30af30af30af30af30af30af3"',
    'discovery-token-ca-cert-hash sha256:0af30af30af30af30af30af30af30af30af30af30af30af30af30af30af30af3',
    'https://172.18.0.2:6443/api/v1/nodes?fieldSelector=metadata.name%3Da',
    'failed to pull image "registry.example/app@sha256:0af3": not found',
    'MountVolume.SetUp failed for volume "kube-api-access-x7k2p": secret "app" not found',
  ])('and what is none stays: %s', text => {
    expect(scrub(text)).toBe(text)
  })
})

describe('secrets that are known', () => {
  test('are taken out, in one piece and line by line, the longest first', () => {
    const known = scrubber(['correct horse', 'correct horse battery', 'line one\nanother line'])
    expect(known('a correct horse battery, a correct horse')).toBe('a ***, a ***')
    expect(known('x line one\nanother line y')).toBe('x *** y')
    expect(known('prefix another line')).toBe('prefix ***')
  })

  test('may be as large as the cluster takes them, and many', () => {
    const huge = ['a'.repeat(40_000), 'b'.repeat(1_000_000)]
    const many = Array.from({ length: 5000 }, (_, index) => `secret-number-${index}.`)
    const scrub = scrubber([...huge, ...many])
    expect(scrub(`${huge.join(' ')} secret-number-4999. and secret-number-5000.`)).toBe(
      '*** *** *** and secret-number-5000.',
    )
  })

  test('that are words stay', () => {
    expect(scrubber(['admin', ' '])('the admin may')).toBe('the admin may')
  })

  test('are no patterns', () => {
    expect(scrubber(['a.*c[d]+(e)$|x'])('abccde a.*c[d]+(e)$|x')).toBe('abccde ***')
  })
})

test('what docker says is shown without what may be secret in a URL', () => {
  expect(withoutSecrets('Get "https://me:s3cr@t@registry/v2/?a=b&sig=s3cret": EOF, unix:///x?y and app:ci')).toBe(
    'Get "https://***@registry/v2/?***": EOF, unix:///x?*** and app:ci',
  )
})
