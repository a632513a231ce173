/** What later commands of the job get: every output with its sentence, and the variables that carry them. Pure, a leaf. */

export interface Output {
  readonly name: string
  readonly sentence: string
}

export const OUTPUTS = [
  { name: 'name', sentence: "The cluster's name." },
  { name: 'kubeconfig', sentence: 'Path of the kubeconfig for the job; KUBECONFIG names it too.' },
  { name: 'kubeconfig-internal', sentence: "Path of the kubeconfig for containers on the cluster's network." },
  { name: 'server', sentence: 'URL of the API server as the job reaches it.' },
  { name: 'host', sentence: 'Name or address by which the job reaches what the engine publishes.' },
  { name: 'ports', sentence: 'JSON: each published NodePort with the `host:port` that reaches it.' },
  { name: 'network', sentence: "The cluster's Docker network." },
  {
    name: 'registry',
    sentence: 'Address of the registry for docker push and docker pull, which the engine does: `localhost:25001`.',
  },
  {
    name: 'registry-host',
    sentence:
      "Address of the registry for the job's other tools, which push by themselves (over plain HTTP): `docker:25001`.",
  },
  { name: 'registry-internal', sentence: "Address of the registry for containers on the cluster's network." },
  { name: 'node-image', sentence: 'The node image.' },
  { name: 'kubernetes-version', sentence: "The cluster's Kubernetes version." },
  { name: 'cpus', sentence: 'CPUs that each node offers to pods (allocatable; of the smallest node).' },
  { name: 'memory', sentence: 'Memory that each node offers to pods (allocatable; of the smallest node).' },
  { name: 'builder', sentence: "The buildx builder's name, which BUILDX_BUILDER has too; empty without the option." },
  {
    name: 'logs-dir',
    sentence: "Folder to which the cluster's logs are exported; where the start failed, they are there.",
  },
] as const satisfies readonly Output[]

export type OutputName = (typeof OUTPUTS)[number]['name']
export type Outputs = Readonly<Record<OutputName, string>>

/** A published NodePort and where the job reaches it. */
export interface PublishedPort {
  readonly node: number
  readonly protocol: 'TCP' | 'UDP' | 'SCTP'
  readonly host: string
  readonly outer: number
}

/** The output `ports`: `{"30080":"docker:32801"}`; what is not TCP says so in its key. */
export function portsOutput(ports: readonly PublishedPort[]): string {
  return JSON.stringify(Object.fromEntries(ports.map(port => [portName(port), portAddress(port)])))
}

/** The variables for later commands: KUBECONFIG, KIND_IN_DIND_NAME and its like, KIND_IN_DIND_PORT_30080. */
export function variablesOf(outputs: Outputs, ports: readonly PublishedPort[]): Record<string, string> {
  const variables: Record<string, string> = { KUBECONFIG: outputs.kubeconfig }
  if (outputs.builder !== '') variables['BUILDX_BUILDER'] = outputs.builder
  for (const { name } of OUTPUTS) variables[`KIND_IN_DIND_${name.toUpperCase().replaceAll('-', '_')}`] = outputs[name]
  for (const port of ports) {
    const suffix = port.protocol === 'TCP' ? '' : `_${port.protocol}`
    variables[`KIND_IN_DIND_PORT_${port.node}${suffix}`] = portAddress(port)
  }
  return variables
}

/** As the option `ports` names it: `30080`, `30053/udp`. */
export function portName({ node, protocol }: PublishedPort): string {
  return protocol === 'TCP' ? `${node}` : `${node}/${protocol.toLowerCase()}`
}

/** `docker:32801`; an IPv6 address in brackets. */
export function portAddress({ host, outer }: Pick<PublishedPort, 'host' | 'outer'>): string {
  return host.includes(':') ? `[${host}]:${outer}` : `${host}:${outer}`
}
