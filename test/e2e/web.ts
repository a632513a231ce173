/** Two web servers, one on each node, behind the NodePort 30080. */

export const NODE_PORT = 30080

/**
 * A manifest for kubectl.
 *
 * @param image a web server on port 80 that every node has; it is never pulled
 */
export function webManifest(image: string): string {
  const labels = { app: 'web' }
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: 'web', image, imagePullPolicy: 'Never', ports: [{ containerPort: 80 }] }],
          terminationGracePeriodSeconds: 0,
          // Beside workers the control plane is not for everybody's pods.
          tolerations: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }],
          topologySpreadConstraints: [
            {
              maxSkew: 1,
              topologyKey: 'kubernetes.io/hostname',
              whenUnsatisfiable: 'DoNotSchedule',
              nodeTaintsPolicy: 'Honor',
              labelSelector: { matchLabels: labels },
            },
          ],
        },
      },
    },
  }
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'web' },
    spec: { type: 'NodePort', selector: labels, ports: [{ port: 80, nodePort: NODE_PORT }] },
  }
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [deployment, service] })
}
