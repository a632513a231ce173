import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  checkKubeconfigOwner,
  checkKubeconfigPath,
  isOurs,
  readKubeconfig,
  withServer,
  writeKubeconfig,
} from '../../src/cluster/kubeconfig.ts'
import { LABEL } from '../../src/plan.ts'
import { answeringEngine, no, ok } from '../answers.ts'

/** As kind prints it. */
const yaml = `
apiVersion: v1
kind: Config
clusters:
- {name: kind-one, cluster: {server: https://127.0.0.1:6443, certificate-authority-data: Q0E=}}
contexts:
- {name: kind-one, context: {cluster: kind-one, user: kind-one}}
current-context: kind-one
users:
- {name: kind-one, user: {client-certificate-data: Q0VSVA==, client-key-data: S0VZ}}
`

describe('a kubeconfig', () => {
  it('names the namespace default, which a pod around the job would replace by its own', () => {
    expect(JSON.parse(readKubeconfig(yaml).exportConfig())).toMatchObject({
      contexts: [{ name: 'kind-one', context: { cluster: 'kind-one', user: 'kind-one', namespace: 'default' } }],
    })
  })

  it('keeps the namespace that it has', () => {
    const given = yaml.replace('user: kind-one}}', 'user: kind-one, namespace: own}}')
    expect(readKubeconfig(given).getContexts()).toMatchObject([{ namespace: 'own' }])
  })

  it('moves to another address with all that proves who is there', () => {
    const before = readKubeconfig(yaml)
    const moved = withServer(before, 'https://docker:32801')
    expect(moved.getCurrentCluster()).toEqual({ ...before.getCurrentCluster(), server: 'https://docker:32801' })
    expect(moved.getCurrentUser()).toEqual(before.getCurrentUser())
    expect(moved.contexts).toEqual(before.contexts)
    expect(moved.currentContext).toBe('kind-one')
  })
})

describe('a kubeconfig file', () => {
  let folder: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'kubeconfig-'))
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const path = (): string => join(folder, 'new/config')

  it("is for its user's eyes only, also where a killed job left one that was not", () => {
    writeKubeconfig(path(), readKubeconfig(yaml))
    chmodSync(path(), 0o644)
    checkKubeconfigPath(path())
    writeKubeconfig(path(), readKubeconfig(yaml))
    expect(statSync(path()).mode & 0o777).toBe(0o600)
  })

  it('is known as ours by the cluster that it is for', () => {
    writeKubeconfig(path(), readKubeconfig(yaml))
    expect(isOurs(path(), 'one')).toBe(true)
    expect(isOurs(path(), 'two')).toBe(false)
    expect(isOurs(join(folder, 'none'), 'one')).toBe(false)
  })

  it('of a cluster that is on the engine is not replaced, and that of one that is gone is', async () => {
    writeKubeconfig(path(), readKubeconfig(yaml))
    const record = { [LABEL.cluster]: 'one', [LABEL.job]: 'job-1' }
    const { docker, asked } = answeringEngine({ 'volume inspect': ok(JSON.stringify(record)) })
    await expect(checkKubeconfigOwner(docker, path())).rejects.toThrow(
      /^kubeconfig: .*config is that of the cluster one, which is on the engine \(of the job job-1\); name another path/,
    )
    expect(asked[0]).toContain('kind-in-dind-one')
    await checkKubeconfigOwner(answeringEngine({ 'volume inspect': no('no such volume') }).docker, path())
    await checkKubeconfigOwner(docker, join(folder, 'none'))
  })

  it.each([yaml, 'precious', '{"current-context": "work"}'])('of the user is not replaced: %j', text => {
    writeFileSync(join(folder, 'config'), text)
    expect(() => checkKubeconfigPath(join(folder, 'config'))).toThrow(/^kubeconfig: .*config exists already/)
  })
})
