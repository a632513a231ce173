import { describe, expect, test } from 'vitest'
import { distinct, parseReference } from '../../src/images/reference.ts'

const DIGEST = `sha256:${'a'.repeat(64)}`

describe('the name of an image in a node', () => {
  test.each([
    ['app', 'docker.io/library/app:latest'],
    ['app:ci', 'docker.io/library/app:ci'],
    ['docker.io/app:ci', 'docker.io/library/app:ci'],
    ['index.docker.io/library/app:ci', 'docker.io/library/app:ci'],
    ['team/app', 'docker.io/team/app:latest'],
    ['team/sub/app:1.0', 'docker.io/team/sub/app:1.0'],
    ['localhost/app', 'localhost/app:latest'],
    ['localhost:5000/app', 'localhost:5000/app:latest'],
    ['registry:5000/app:ci', 'registry:5000/app:ci'],
    ['registry.example/app', 'registry.example/app:latest'],
    ['registry.example:5000/team/app:ci', 'registry.example:5000/team/app:ci'],
    ['Registry/app:ci', 'Registry/app:ci'],
    [`app@${DIGEST}`, `docker.io/library/app@${DIGEST}`],
    [`app:ci@${DIGEST}`, `docker.io/library/app@${DIGEST}`],
    [`registry:5000/app:ci@${DIGEST}`, `registry:5000/app@${DIGEST}`],
  ])('%s: %s', (given, name) => {
    expect(parseReference(given)).toMatchObject({ given, name })
  })

  test('a tag is kept beside a digest, and is latest only where there is neither', () => {
    expect(parseReference(`app:ci@${DIGEST}`)).toMatchObject({ tag: 'ci', digest: DIGEST, registry: 'docker.io' })
    expect(parseReference(`app@${DIGEST}`)).toMatchObject({ tag: undefined, digest: DIGEST })
    expect(parseReference('app')).toMatchObject({ tag: 'latest', digest: undefined, path: 'library/app' })
  })
})

test('references to one image are one, the first as it was given', () => {
  const given = ['app', 'web:1', 'docker.io/library/app:latest', `web:1@${DIGEST}`, `web@${DIGEST}`]
  expect(distinct(given).map(reference => reference.given)).toEqual(['app', 'web:1', `web:1@${DIGEST}`])
})
