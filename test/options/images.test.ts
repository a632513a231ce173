import { IMAGE_OPTIONS } from '../../src/options/images.ts'
import { judgeOptions, SHA256 } from './judge.ts'

judgeOptions(IMAGE_OPTIONS, {
  good: [
    ['images', 'app:ci, out/app.tar.gz', { images: ['app:ci', 'out/app.tar.gz'] }],
    ['images', ['./app', '/srv/app'], { images: ['./app', '/srv/app'] }],
    ['images', 'app:ci', { images: ['app:ci'] }],
    [
      'images',
      'app:ci, web\n\n registry.example/db:1 \napp:ci',
      { images: ['app:ci', 'web', 'registry.example/db:1'] },
    ],
    ['images', ['app:ci', 'web,db'], { images: ['app:ci', 'web', 'db'] }],
    [
      'images',
      `web@sha256:${SHA256},app:ci@sha256:${SHA256}`,
      { images: [`web@sha256:${SHA256}`, `app:ci@sha256:${SHA256}`] },
    ],
    ['pull', 'never', { pull: 'never' }],
    ['pull', 'missing', { pull: 'missing' }],
  ],
  wrong: [
    ['images: {"a":1} is not text', { images: { a: 1 } }],
    ['images: [["app:ci"]] is not text', { images: [[['app:ci']]] }],
    ['images: "App:ci" is not an image reference such as registry.example/app:ci', { images: 'web, App:ci' }],
    ['images: "-v" is not an image reference such as registry.example/app:ci', { images: '-v' }],
    [
      `images: "sha256:${SHA256}" is an id, by which no pod can name an image; tag it (docker tag) and name the tag`,
      { images: `sha256:${SHA256}` },
    ],
    ['pull: "always" is neither missing nor never', { pull: 'always' }],
  ],
})
