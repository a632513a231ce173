/** The docker CLI's arguments for networks. */
import { LABEL, type Plan } from '../plan.ts'
import { labelFlags } from './records.ts'

/**
 * @param given.mtu bytes, as the engine's default network has it; undefined leaves it to the engine
 * @param given.ipv6 an IPv6 subnet; undefined makes a network of IPv4 alone
 */
export const createNetwork = (
  plan: Plan,
  given: { readonly mtu: string | undefined; readonly ipv6: string | undefined },
): string[] => [
  'network',
  'create',
  '--driver=bridge',
  '--opt=com.docker.network.bridge.enable_ip_masquerade=true',
  ...(given.mtu === undefined ? [] : [`--opt=com.docker.network.driver.mtu=${given.mtu}`]),
  ...(given.ipv6 === undefined ? [] : ['--ipv6', `--subnet=${given.ipv6}`]),
  ...labelFlags(plan.labels),
  plan.network,
]

/** Fails where the engine has no network of that name. */
export const networkExists = (name: string): string[] => ['network', 'inspect', '--format={{.Id}}', name]

/** Prints the subnets of a network, a line each. */
export const networkSubnets = (name: string): string[] => [
  'network',
  'inspect',
  '--format={{range .IPAM.Config}}{{println .Subnet}}{{end}}',
  name,
]

/** Prints the ids of the networks of that name that any use made. */
export const madeNetworks = (name: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=name=^${name}$`,
  `--filter=label=${LABEL.cluster}`,
]

/** Prints the MTU that the engine's own network was given; nothing where it was given none. */
export const defaultMtu: readonly string[] = [
  'network',
  'inspect',
  'bridge',
  '--format={{index .Options "com.docker.network.driver.mtu"}}',
]

/** Prints the id of the network of that name. */
export const networkNamed = (name: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=name=^${name}$`,
]

export const removeNetworks = (ids: readonly string[]): string[] => ['network', 'rm', ...ids]

/** Prints the ids of the containers on a network. */
export const networkMembers = (network: string): string[] => [
  'network',
  'inspect',
  '--format={{range $id, $_ := .Containers}}{{println $id}}{{end}}',
  network,
]

export const connectNetwork = (network: string, container: string): string[] => [
  'network',
  'connect',
  network,
  container,
]

export const disconnectNetwork = (network: string, container: string): string[] => [
  'network',
  'disconnect',
  '--force',
  network,
  container,
]
