import type { Environment } from '../host/host.ts'

/** Every program reads some of these; the lower-case ones count where both are set and differ. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'] as const

/** Whether the job goes through a proxy. */
export function hasProxy(env: Environment): boolean {
  return PROXIES.some(name => env[name] || env[name.toLowerCase()])
}

/**
 * The variables that keep a proxy out of the way to some names: NO_PROXY as the job has it, with the names added, in both
 * spellings. docker's CLI asks the proxy for a tcp engine too.
 *
 * @param names host names and addresses
 * @returns nothing where there is no proxy
 */
export function aroundProxy(env: Environment, names: readonly string[]): Record<string, string> {
  if (!hasProxy(env)) return {}
  const given = (env['no_proxy'] || env['NO_PROXY'] || '').split(',').map(name => name.trim())
  const all = [...new Set([...given, ...names])].filter(name => name !== '').join(',')
  return { NO_PROXY: all, no_proxy: all }
}
