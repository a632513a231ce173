import { parseArgs } from 'node:util'
import { COMMANDS, type Command } from '../commands.ts'
import type { Given } from '../lib/given.ts'
import { Problem } from '../lib/problem.ts'
import { OPTION_GROUPS, type Option } from '../options.ts'

export interface CommandLine {
  readonly verb: Command['name'] | 'help'
  /** By option name. Flags that are no option are here too, for the command's own parser to refuse. */
  readonly given: Readonly<Record<string, Given>>
}

/**
 * Reads `up --workers 1 --images app:ci`. Lists may be repeated; a boolean needs no value; `--flag=value` works too.
 *
 * @returns for `help`, the command that help was asked for is in `given.command`
 * @throws Problem where the words make no command
 */
export function readCommandLine(argv: readonly string[]): CommandLine {
  const { values, positionals, tokens } = parseArgs({
    args: [...argv],
    options: { help: { type: 'boolean', short: 'h' }, ...flags() },
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const [verb, ...rest] = positionals
  const command = COMMANDS.find(({ name }) => name === (verb === 'help' ? rest[0] : verb))
  if (values['help'] === true || verb === 'help') return { verb: 'help', given: { command: command?.name } }
  if (command === undefined) {
    const found = verb === undefined ? 'a command is missing' : `there is no command ${JSON.stringify(verb)}`
    const names = COMMANDS.map(({ name }) => name)
    throw new Problem(
      `kind-in-dind: ${found}; there are ${names.slice(0, -1).join(', ')} and ${names.at(-1)}, and --help shows all options`,
    )
  }
  const given = values as Record<string, Given>
  if (command.words !== undefined) {
    const flagged = given[command.words]
    const words = [...(Array.isArray(flagged) ? flagged : []), ...rest]
    return { verb: command.name, given: { ...given, [command.words]: words } }
  }
  const known = COMMANDS.flatMap(({ options }) => options.map(({ name }) => name))
  const unknown = tokens.filter(token => token.kind === 'option').filter(token => !known.includes(token.name))
  if (command.name !== 'up') {
    const other = Object.keys(given).find(name => !command.options.some(option => option.name === name))
    const takes = command.options.map(({ name }) => `--${name}`).join(', ')
    if (other !== undefined) throw new Problem(`--${other} means nothing to ${command.name}; it takes ${takes} only`)
  }
  // The word after an unknown flag is most likely its value, and the flag is what parse reports.
  if (rest.length > 0 && unknown.length === 0) {
    if (command.name !== 'up')
      throw new Problem(`${JSON.stringify(rest[0])} means nothing to ${command.name}, which takes flags only`)
    throw new Problem(`${JSON.stringify(rest[0])} belongs to no flag; lists are given as --images a --images b or a,b`)
  }
  return { verb: command.name, given }
}

/** The flags of all commands, as parseArgs takes them. */
function flags(): Record<string, { type: 'boolean' | 'string'; multiple: boolean }> {
  return Object.fromEntries(
    COMMANDS.flatMap(({ options }) => options).map(({ name, schema }) => [
      name,
      { type: schema === 'boolean' ? 'boolean' : 'string', multiple: schema === 'list' } as const,
    ]),
  )
}

/** How a value of each kind is shown. */
const VALUES: Readonly<Record<Option['schema'], string>> = {
  string: ' VALUE',
  name: ' VALUE',
  boolean: '',
  'boolean or port': ' true|PORT',
  integer: ' NUMBER',
  duration: ' DURATION',
  list: ' VALUE,... (may be repeated)',
  version: ' VERSION',
  config: ' FILE',
  builder: ' true|KEY=VALUE',
}

/** Characters of a line of the help. */
const WIDTH = 100

/**
 * What `--help` prints.
 *
 * @param of one command; undefined for all of them, with the options of `up`
 */
export function usage(of: Command['name'] | undefined): string {
  const commands = of === undefined ? COMMANDS : COMMANDS.filter(({ name }) => name === of)
  const groups =
    (of ?? 'up') === 'up' ? OPTION_GROUPS : [{ title: `Options of ${of}`, options: commands[0]?.options ?? [] }]
  return [
    'kind-in-dind: a Kubernetes cluster (kind) in the Docker engine that you already have',
    '',
    ...commands.flatMap(({ name, synopsis, sentence }) => [
      `  kind-in-dind ${name} ${synopsis}`,
      ...indented(sentence),
    ]),
    ...groups.flatMap(({ title, options }) => [
      '',
      groups.length === 1 ? `${title}:` : `Options of up: ${title.toLowerCase()}`,
      ...options.flatMap(optionLines),
    ]),
    '',
    'The exit code is 0, 1 after a failure, and 128 + n after signal n. What a script reads is on stdout, the log is on stderr.',
    'KIND_IN_DIND_DEBUG=1 shows every command that is run.',
  ].join('\n')
}

function optionLines({ name, schema, sentence, default: otherwise }: Option): string[] {
  const says = otherwise === '' || schema === 'boolean' ? '' : ` Default: ${otherwise}.`
  return [`  --${name}${VALUES[schema]}`, ...indented(`${sentence}${says}`)]
}

/** Text in lines that fit. */
function indented(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const line = lines.at(-1)
    if (line === undefined || line.length + word.length >= WIDTH) lines.push(`      ${word}`)
    else lines[lines.length - 1] = `${line} ${word}`
  }
  return lines
}
