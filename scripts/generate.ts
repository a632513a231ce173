/**
 * What is written from the lists of options and outputs: action.yml, plugin.yml and the README's tables. Pure; the
 * files are compared by test/generate.test.ts and written by the same test under `npm run generate`. (Vitest runs
 * TypeScript on every Node that we support, and its file snapshots are just that: so no other runner is needed.)
 */
import { stringify } from 'yaml'
import { COMMANDS, type Command } from '../src/commands.ts'
import { OPTION_GROUPS, OPTIONS, type Option } from '../src/options.ts'
import { OUTPUTS } from '../src/outputs.ts'

const NAME = 'kind-in-dind'
const DESCRIPTION =
  "A Kubernetes cluster (kind) in the Docker engine that the job already has: up before the job's commands, gone after them"
const AUTHOR = 'The kind-in-dind authors'
const NOTICE = '# Written by `npm run generate` from src/options/ and src/outputs.ts: change those.\n'

export function actionYaml(): string {
  return yaml({
    name: NAME,
    description: DESCRIPTION,
    author: AUTHOR,
    branding: { icon: 'box', color: 'blue' },
    inputs: {
      ...Object.fromEntries(OPTIONS.map(option => [option.name, { description: described(option), required: false }])),
      'job-status': {
        description: 'Not for you to give: through it the post step hears how the job went.',
        required: false,
        // biome-ignore lint/suspicious/noTemplateCurlyInString: an expression of GitHub's
        default: '${{ job.status }}',
      },
    },
    outputs: Object.fromEntries(OUTPUTS.map(({ name, sentence }) => [name, { description: sentence }])),
    runs: { using: 'node24', main: 'dist/main.js', post: 'dist/post.js', 'post-if': 'always()' },
  })
}

/** The action.yml of a sub-action: a command of the program, as a step between pre and post. */
export function subActionYaml(name: Command['name']): string {
  const command = COMMANDS.find(one => one.name === name)
  if (command === undefined) throw new Error(`there is no command ${name}`)
  return yaml({
    name: `${NAME}: ${name}`,
    description: command.sentence,
    author: AUTHOR,
    branding: { icon: 'box', color: 'blue' },
    inputs: Object.fromEntries(
      command.options.map(option => [
        option.name,
        { description: described(option), required: option.name === command.words && option.default === '' },
      ]),
    ),
    ...(command.outputs && {
      outputs: Object.fromEntries(command.outputs.map(({ name, sentence }) => [name, { description: sentence }])),
    }),
    runs: { using: 'node24', main: `../dist/${name}.js` },
  })
}

export function pluginYaml(): string {
  return yaml({
    name: NAME,
    description: DESCRIPTION,
    author: AUTHOR,
    requirements: ['bash', 'docker'],
    configuration: {
      properties: Object.fromEntries(
        OPTIONS.map(option => [option.name, { description: described(option), ...SCHEMAS[option.schema] }]),
      ),
      additionalProperties: false,
    },
  })
}

/** A JSON schema, as far as plugin.yml needs one. */
export interface Schema {
  readonly type: string | readonly string[]
  readonly items?: Schema
}

/** What `parse` takes: a pipeline's variables always arrive as strings, and YAML reads 1.34 and 123 as numbers. */
export const SCHEMAS: Readonly<Record<Option['schema'], Schema>> = {
  string: { type: 'string' },
  name: { type: ['string', 'number'] },
  boolean: { type: ['boolean', 'string'] },
  'boolean or port': { type: ['boolean', 'integer', 'string'] },
  integer: { type: ['integer', 'string'] },
  duration: { type: ['string', 'integer'] },
  list: { type: ['string', 'number', 'array'], items: { type: ['string', 'number'] } },
  version: { type: ['string', 'number'] },
  config: { type: ['string', 'object'] },
  builder: { type: ['boolean', 'string', 'array', 'object'], items: { type: 'string' } },
}

/** The README with its tables between `<!-- options -->` and `<!-- /options -->`, and likewise for outputs. */
export function withTables(readme: string): string {
  const options = table(
    ['option', 'default', 'meaning'],
    OPTION_GROUPS.flatMap(({ title, page, options }) => [
      [`**[${title}](${page})**`, '', ''],
      ...options.map(option => [`\`${option.name}\``, option.default, option.sentence]),
    ]),
  )
  const outputs = table(
    ['output', 'meaning'],
    OUTPUTS.map(({ name, sentence }) => [`\`${name}\``, sentence]),
  )
  return between(between(readme, 'options', options), 'outputs', outputs)
}

/** Replaces what stands between a pair of markers. */
export function between(text: string, marker: string, content: string): string {
  const start = `<!-- ${marker} -->`
  const end = `<!-- /${marker} -->`
  const [before, rest, ...more] = text.split(start)
  const after = rest?.split(end)
  if (before === undefined || after?.length !== 2 || more.length > 0) {
    throw new Error(`README.md needs ${start} and ${end}, once and in this order`)
  }
  return `${before}${start}\n${content}\n${end}${after[1]}`
}

/** A Markdown table. A `|` ends a cell even between backticks, unless it is escaped (GitHub's Markdown, "Tables"). */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n')
}

function described({ sentence, default: absent }: Option): string {
  return absent === '' ? sentence : `${sentence} Default: ${absent}.`
}

function yaml(document: object): string {
  return NOTICE + stringify(document, { lineWidth: 120, aliasDuplicateObjects: false })
}
