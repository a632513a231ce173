import { parseArgs } from 'node:util'
import type { Given } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { OPTIONS } from '../options.ts'

export interface CommandLine {
  readonly verb: 'up' | 'down' | 'help'
  /** By option name. Flags that are no option are here too, for `parse` to refuse. */
  readonly given: Readonly<Record<string, Given>>
}

/**
 * Reads `up --workers 1 --images app:ci`. Lists may be repeated; a boolean needs no value; `--flag=value` works too.
 *
 * @throws Problem where the words make no command
 */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: {
      help: { type: 'boolean', short: 'h' },
      ...Object.fromEntries(
        OPTIONS.map(({ name, schema }) => [
          name,
          { type: schema === 'boolean' ? 'boolean' : 'string', multiple: schema === 'list' } as const,
        ]),
      ),
    },
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const [verb, ...rest] = positionals
  if (values['help'] === true || verb === 'help') return { verb: 'help', given: {} }
  if (verb !== 'up' && verb !== 'down') {
    const found = verb === undefined ? 'a command is missing' : `there is no command ${JSON.stringify(verb)}`
    throw new Problem(`kind-in-dind: ${found}; there are up and down, and --help shows all options`)
  }
  const given = values as Record<string, Given>
  const unknown = tokens.filter(token => token.kind === 'option').filter(token => !isKnown(token.name))
  if (verb === 'down') {
    const other = Object.keys(given).find(name => name !== 'name')
    if (other !== undefined) throw new Problem(`--${other} means nothing to down; it takes --name only`)
  }
  // The word after an unknown flag is most likely its value, and the flag is what parse reports.
  if (rest.length > 0 && unknown.length === 0) {
    throw new Problem(`${JSON.stringify(rest[0])} belongs to no flag; lists are given as --images a --images b or a,b`)
  }
  return { verb, given }
}

/** What `--help` prints. */
export function usage(): string {
  const lines = [
    'kind-in-dind: a Kubernetes cluster (kind) in the Docker engine that you already have',
    '',
    '  kind-in-dind up [--OPTION VALUE]...   start a cluster; its variables go to stdout, the log to stderr:',
    '                                        exports="$(kind-in-dind up)" && eval "$exports"',
    "  kind-in-dind down [--name NAME]       remove it: the one named, else this shell's, else the only one",
    '',
    'Options of up:',
  ]
  for (const option of OPTIONS) {
    const value = option.schema === 'boolean' ? '' : ` ${option.schema.toUpperCase()}`
    const repeatable = option.schema === 'list' ? ' (may be repeated)' : ''
    const otherwise = option.default === '' ? '' : ` Default: ${option.default}.`
    lines.push(`  --${option.name}${value}${repeatable}`, `      ${option.sentence}${otherwise}`)
  }
  lines.push('', 'KIND_IN_DIND_DEBUG=1 shows every command that is run.')
  return lines.join('\n')
}

function isKnown(name: string): boolean {
  return OPTIONS.some(option => option.name === name)
}
