/** The DNS of a network like those that runners are in: it has an answer for every name below the network's own domain. */
import { docker, names, until } from './lab.ts'
import type { Ground } from './place.ts'

/** Whatever is asked for below this domain is there. */
export const DOMAIN = 'runner.internal'
/** What a name below that domain leads to; none of these addresses is anybody's (RFC 5737). */
export const WILDCARD = '203.0.113.9'
/** A name that is outside of it. */
export const OUTSIDE = { name: 'outside.example', address: '198.51.100.7' }

/** What runs in the container: RFC 1035, one question, one answer. */
const SERVER = `
const socket = require('node:dgram').createSocket('udp4')
socket.on('message', (query, from) => {
  const labels = []
  let at = 12
  for (; query[at] > 0; at += 1 + query[at]) labels.push(query.toString('latin1', at + 1, at + 1 + query[at]))
  const name = labels.join('.').toLowerCase()
  const type = query.readUInt16BE(at + 1)
  const address = name === '${OUTSIDE.name}' ? '${OUTSIDE.address}' : name.endsWith('.${DOMAIN}') ? '${WILDCARD}' : undefined
  const found = address !== undefined && type === 1
  const answer = found ? [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split('.').map(Number)] : []
  const reply = Buffer.concat([query.subarray(0, at + 5), Buffer.from(answer)])
  reply.writeUInt16BE(address === undefined ? 0x8183 : 0x8180, 2)
  reply.writeUInt16BE(found ? 1 : 0, 6)
  reply.writeUInt32BE(0, 8)
  socket.send(reply, from.port, from.address)
})
socket.bind(53, () => console.log('listening'))`

/**
 * Starts it.
 *
 * @returns flags of docker run that make a container take its names from there, as a runner does
 */
export async function startDns(ground: Ground): Promise<readonly string[]> {
  const server = await ground.startContainer('dns', '--entrypoint', 'node', names.images.step, '-e', SERVER)
  await until('the DNS server', 30_000, async () => (await docker('logs', server)) || undefined)
  const address = await docker(
    'inspect',
    '--format',
    '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}',
    server,
  )
  return ['--dns', address.trim(), '--dns-search', DOMAIN]
}
