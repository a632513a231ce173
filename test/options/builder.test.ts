import { BUILDER_OPTIONS } from '../../src/options/builder.ts'
import { judgeOptions } from './judge.ts'

judgeOptions(BUILDER_OPTIONS, {
  good: [
    ['builder', true, { builder: { driver: {}, config: undefined, flags: undefined } }],
    ['builder', ' True ', { builder: { driver: {}, config: undefined, flags: undefined } }],
    ['builder', 'false', { builder: undefined }],
    ['builder', false, { builder: undefined }],
    [
      'builder',
      'replicas=3\n\n tolerations=key=a,value=b;key=c \n"nodeselector=a=b,c=d"',
      {
        builder: {
          driver: { replicas: '3', tolerations: 'key=a,value=b;key=c', nodeselector: 'a=b,c=d' },
          ...{ config: undefined, flags: undefined },
        },
      },
    ],
    [
      'builder',
      ['replicas=2', 'rootless=true'],
      { builder: { driver: { replicas: '2', rootless: 'true' }, config: undefined, flags: undefined } },
    ],
    [
      'builder',
      { replicas: 3, rootless: true, 'requests.cpu': '500m', labels: 'a=b,c=d' },
      {
        builder: {
          driver: { replicas: '3', rootless: 'true', 'requests.cpu': '500m', labels: 'a=b,c=d' },
          ...{ config: undefined, flags: undefined },
        },
      },
    ],
    [
      'builder',
      'buildkitd-config=buildkitd.toml\nbuildkitd-flags=--debug --oci-worker-gc=false',
      { builder: { driver: {}, config: 'debug = true\n', flags: '--debug --oci-worker-gc=false' } },
    ],
    [
      'builder',
      { 'buildkitd-config': 'debug = true\n[worker.oci]\n' },
      { builder: { driver: {}, config: 'debug = true\n[worker.oci]\n', flags: undefined } },
    ],
  ],
  wrong: [
    ['builder: "yes" is neither true nor false, nor a driver option such as replicas=3', { builder: 'yes' }],
    ['builder: "=3" is neither true nor false, nor a driver option such as replicas=3', { builder: '=3' }],
    [
      'builder: labels is {"a":"b"}; write it as one text, as buildx takes it, such as "a=b,c=d"',
      { builder: { labels: { a: 'b' } } },
    ],
    ['builder: 3 is not text', { builder: 3 }],
    [
      'builder: buildkitd-config: "missing.toml" is no file here, and no TOML either',
      { builder: 'buildkitd-config=missing.toml' },
    ],
  ],
})
