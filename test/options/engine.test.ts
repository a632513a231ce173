import { ENGINE_OPTIONS } from '../../src/options/engine.ts'
import { judgeOptions } from './judge.ts'

judgeOptions(ENGINE_OPTIONS, {
  good: [
    ['docker-host', 'tcp://docker:2376', { dockerHost: 'tcp://docker:2376' }],
    ['docker-host', 'unix:///var/run/docker.sock', { dockerHost: 'unix:///var/run/docker.sock' }],
    ['docker-wait', '10s', { dockerWait: 10_000 }],
    ['docker-wait', 0, { dockerWait: 0 }],
    ['host', 'engine.internal', { host: 'engine.internal' }],
    ['host', '10.0.0.5', { host: '10.0.0.5' }],
    ['network', 'ci_default', { network: 'ci_default' }],
    ['kubeconfig', 'out/kubeconfig', { kubeconfig: 'out/kubeconfig' }],
    [
      'download-url',
      'kind=https://mirror.example/{version}/kind, kubectl=http://mirror.example/{version}/{os}/{arch}/kubectl',
      {
        downloadUrls: {
          kind: 'https://mirror.example/{version}/kind',
          kubectl: 'http://mirror.example/{version}/{os}/{arch}/kubectl',
        },
      },
    ],
  ],
  wrong: [
    [
      'docker-host: "docker:2375" is not an engine\'s address such as tcp://docker:2376 or unix:///var/run/docker.sock',
      { 'docker-host': 'docker:2375' },
    ],
    [
      'docker-host: "tcp://***@docker:2375" is not an engine\'s address such as tcp://docker:2376 or unix:///var/run/docker.sock',
      { 'docker-host': 'tcp://me:secret@docker:2375' },
    ],
    ['docker-wait: "soon" is not a duration; write it with its unit, such as 90s or 5m', { 'docker-wait': 'soon' }],
    ['host: "docker:2376" is neither a host name nor an address; a port does not belong here', { host: 'docker:2376' }],
    ['network: "a b" is not a network\'s name', { network: 'a b' }],
    [
      "network: bridge is Docker's own, where nodes do not find each other by name; name another one",
      { network: 'bridge' },
    ],
    ['kubeconfig: 7 is not text', { kubeconfig: 7 }],
    [
      'download-url: "https://mirror.example/{version}" is not NAME=URL; names are kind, kubectl, buildx, node',
      { 'download-url': 'https://mirror.example/{version}' },
    ],
    [
      'download-url: "kind=https://mirror.example/kind" does not say where the {version} goes',
      { 'download-url': 'kind=https://mirror.example/kind' },
    ],
    [
      'download-url: "kind=https://***@host/x" does not say where the {version} goes',
      { 'download-url': 'kind=https://me:secret@host/x' },
    ],
  ],
})
