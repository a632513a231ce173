import { REGISTRY_OPTIONS } from '../../src/options/registry.ts'
import { FILES, judgeOptions } from './judge.ts'

/** A mirror as parsed, whole and plain. */
const MIRROR = {
  scheme: 'https' as const,
  host: 'mirror.example',
  path: '',
  credentials: undefined,
  ca: undefined,
}
const PEM = FILES['ca.pem']

judgeOptions(REGISTRY_OPTIONS, {
  good: [
    ['registry', true, { registry: { port: undefined } }],
    ['registry', ' True ', { registry: { port: undefined } }],
    ['registry', 'false', { registry: undefined }],
    ['registry', 5001, { registry: { port: 5001 } }],
    ['registry', '5001', { registry: { port: 5001 } }],
    [
      'registry-mirrors',
      'docker.io=https://mirror.example, quay.io=http://me:p%40ss@10.0.0.1:5000/v2/quay/',
      {
        registryMirrors: [
          { ...MIRROR, upstream: 'docker.io', host: 'mirror.example' },
          {
            ...{ ...MIRROR, upstream: 'quay.io', scheme: 'http', host: '10.0.0.1:5000', path: 'quay' },
            credentials: { user: 'me', password: 'p@ss' },
          },
        ],
      },
    ],
    [
      'registry-mirrors',
      ['Registry.Example:5000=https://mirror.example/a/b ca=ca.pem'],
      { registryMirrors: [{ ...MIRROR, upstream: 'registry.example:5000', path: 'a/b', ca: PEM }] },
    ],
  ],
  wrong: [
    ['registry: "yes" is neither true nor false, nor a port such as 5001', { registry: 'yes' }],
    ['registry: 0 is not between 1 and 65535', { registry: 0 }],
    ['registry: 65536 is not between 1 and 65535', { registry: '65536' }],
    [
      'registry-mirrors: "https://mirror.example" is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without',
      { 'registry-mirrors': 'https://mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example plain" is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without',
      { 'registry-mirrors': 'docker.io=https://me:secret@mirror.example plain' },
    ],
    [
      'registry-mirrors: "https://quay.io=https://mirror.example" names https://quay.io as a registry; write it as references do: docker.io, registry.example:5000',
      { 'registry-mirrors': 'https://quay.io=https://mirror.example' },
    ],
    [
      'registry-mirrors: "registry-1.docker.io=https://mirror.example" is for Docker Hub, whose images are of docker.io: write that',
      { 'registry-mirrors': 'registry-1.docker.io=https://mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=mirror.example" has no http or https URL',
      { 'registry-mirrors': 'docker.io=mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has no http or https URL',
      { 'registry-mirrors': 'docker.io=https://me:se/cret@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***" has no http or https URL',
      { 'registry-mirrors': 'docker.io=https://me:secret' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" is not REGISTRY=URL such as docker.io=https://mirror.example, with ca=FILE behind it or without',
      { 'registry-mirrors': 'docker.io=https://me:sec ret@mirror.example' },
    ],
    ...['docker.io=https://me:se,cr,et@mirror.example', 'docker.io=https://me:se\ncret@mirror.example'].map(
      given =>
        [
          'registry-mirrors: a user and password are in several lines; what a password has of commas, blanks and line breaks is written as %2C, %20 and %0A',
          { 'registry-mirrors': given },
        ] as const,
    ),
    [
      'registry-mirrors: "docker.io=https://mirror.example/?a=b" has more than a path in its URL; what a password has of ?, #, @ and / is written as %3F, %23, %40 and %2F',
      { 'registry-mirrors': 'docker.io=https://mirror.example/?a=b' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has only one of user and password',
      { 'registry-mirrors': 'docker.io=https://me@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://***@mirror.example" has a % in its user or password that begins no such code; write it as %25',
      { 'registry-mirrors': 'docker.io=https://me:100%@mirror.example' },
    ],
    [
      'registry-mirrors: "docker.io=https://mirror.example ca=missing.pem" names missing.pem, which is no file here',
      { 'registry-mirrors': 'docker.io=https://mirror.example ca=missing.pem' },
    ],
    [
      'registry-mirrors: "docker.io=https://mirror.example ca=pod.yaml" names pod.yaml, which has no certificate in it (PEM)',
      { 'registry-mirrors': 'docker.io=https://mirror.example ca=pod.yaml' },
    ],
    [
      'registry-mirrors: "docker.io=http://mirror.example ca=ca.pem" has a ca, which plain http has no use for',
      { 'registry-mirrors': 'docker.io=http://mirror.example ca=ca.pem' },
    ],
    [
      'registry-mirrors: docker.io=https://mirror.example is there twice',
      { 'registry-mirrors': 'docker.io=https://mirror.example, docker.io=https://mirror.example/' },
    ],
  ],
})
