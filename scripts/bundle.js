// Bundles src/main.ts with the packages that it uses into dist/index.js, and writes the licences of these packages to
// dist/licenses.txt. rolldown: the bundler that vite, which runs the tests, brings along anyway.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'rolldown'

const { output } = await build({
  input: 'src/main.ts',
  platform: 'node',
  logLevel: 'warn',
  output: { dir: 'dist', entryFileNames: 'index.js', format: 'esm', minify: true, codeSplitting: false },
})
writeFileSync('dist/package.json', '{\n  "type": "module"\n}\n')

const modules = output.flatMap(chunk => (chunk.type === 'chunk' ? chunk.moduleIds : []))
const packages = new Set(modules.flatMap(id => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? []))
const licences = [...packages].map(licence).sort()
writeFileSync('dist/licenses.txt', [...new Set(licences)].join('\n'))

/** A package's name, the name of its licence and that licence's text, which is in a file of its own or nowhere. */
function licence(folder) {
  const { name, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  const file = readdirSync(folder).find(entry => /^licen[cs]e(\.|$|-)/i.test(entry))
  const text = file !== undefined && existsSync(join(folder, file)) ? readFileSync(join(folder, file), 'utf8') : ''
  if (license === undefined && text === '') throw new Error(`${name} does not say its licence`)
  return `${name}\n${license ?? ''}\n${text.trim()}\n`
}
