/** Shell lines that give variables to a later command. Pure. */
import { shellQuote } from '../lib/shell.ts'

/** @throws Error where a name is none that a shell can export: it would be run as a command. */
export function exportLines(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => {
      if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) throw new Error(`${JSON.stringify(name)} is no name of a variable`)
      return `export ${name}=${shellQuote(value)}\n`
    })
    .join('')
}

export function exportPathLine(folder: string): string {
  return `export PATH=${shellQuote(folder)}:"$PATH"\n`
}
