// Runs a TypeScript module on every Node that we support, with the loader that the tests have.
// Usage: node scripts/typescript.js FILE, a path from the repository's root
import { dirname } from 'node:path'
import { createViteServer } from 'vitest/node'

const server = await createViteServer({
  root: dirname(import.meta.dirname),
  configFile: false,
  logLevel: 'error',
  appType: 'custom',
  server: { middlewareMode: true, watch: null, ws: false },
  optimizeDeps: { noDiscovery: true },
})
try {
  await server.ssrLoadModule(`/${process.argv[2]}`)
} finally {
  await server.close()
}
