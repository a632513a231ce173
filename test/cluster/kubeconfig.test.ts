import { describe, expect, it } from 'vitest'
import { readKubeconfig, withServer } from '../../src/cluster/kubeconfig.ts'

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
