// Exits with 0 where node_modules is what package-lock.json says, so that nothing is installed twice. Needs no package.
import { readFileSync } from 'node:fs'

const lock = read('package-lock.json')
const there = read('node_modules/.package-lock.json')
const differs = Object.entries(lock).some(([path, { version, optional }]) => {
  if (path === '') return false
  // Packages for other platforms are optional and left out.
  return there[path] === undefined ? optional !== true : there[path].version !== version
})
process.exitCode = differs ? 1 : 0

function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch (error) {
    if (error.code === 'ENOENT') return {}
    throw error
  }
}
