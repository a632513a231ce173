/** The summary of a use, in Markdown: GitHub's job summary, Buildkite's annotation. Pure. */
import { formatBytes } from '../lib/bytes.ts'
import { formatDuration } from '../lib/duration.ts'
import { formatMemory } from '../lib/quantity.ts'
import type { Fact, Report } from './report.ts'
import { failedStage, mermaidGantt, type Stage, textGantt } from './timeline.ts'

/** More of a kind than this is told by its number. */
const MOST = 60

/** A failure with more lines than this shows what a program printed. */
const SENTENCES = 10

/** Characters of a message that are shown: both hosts take 1 MiB in all, and one character may become six. */
const LONGEST = { failure: 60_000, warning: 2000 }

/**
 * Writes the summary.
 *
 * @param stages of the timeline, as `shownStages` gives them
 * @param draws true where the host draws Mermaid. GitHub does; Buildkite's annotations know neither that nor inline styles
 * (https://buildkite.com/docs/pipelines/configure/annotations#formatting-annotations), so there it is lines of text
 */
export function summaryMarkdown(report: Report, stages: readonly Stage[], draws: boolean): string {
  const parts = [
    title(report, stages),
    ...failure(report, stages),
    warnings(report),
    facts(report),
    table(
      ['node', 'CPUs for pods', 'memory for pods'],
      report.nodes.length === 0 ? [] : [...report.nodes.map(nodeRow), ...engineRow(report)],
    ),
    images(report),
    timeline(stages, draws),
  ]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

function title({ cluster, failure, ready, versions }: Report, stages: readonly Stage[]): string {
  const total = formatDuration(Math.max(0, ...stages.map(({ end }) => end)))
  if (failure !== undefined) {
    return `### ❌ kind-in-dind could not start the cluster${cluster === undefined ? '' : ` ${code(cluster)}`}`
  }
  const kubernetes = versions.find(({ what }) => what === 'Kubernetes')?.value ?? ''
  const state = ready === false ? 'is up, and was not waited for' : 'is ready'
  return `### ✅ Kubernetes ${kubernetes} ${state} after ${total}: ${code(`${cluster}`)}`
}

function failure({ failure, logsDir }: Report, stages: readonly Stage[]): string[] {
  if (failure === undefined) return []
  const stage = failedStage(stages)
  const where =
    stage === undefined ? '' : `The stage **${plain(stage.name)}** failed, ${formatDuration(stage.end)} in. `
  const logs = logsDir === undefined ? '' : `The cluster's logs are in ${code(logsDir)}.`
  return [...why(failure.slice(-LONGEST.failure)), `${where}${logs}`.trim()]
}

/** Sentences as text, which wraps; what a program printed behind the first one as it is. */
function why(message: string): string[] {
  const [first = '', ...rest] = message.split('\n')
  if (rest.length < SENTENCES) return [`> ${plain(message)}`]
  return [`> ${plain(first)}`, fenced(rest.join('\n'))]
}

function warnings({ warnings }: Report): string {
  const lines = warnings.map(warning => `- ⚠️ ${plain(warning.slice(0, LONGEST.warning))}`)
  return few(lines, more => `- ${more}`).join('\n')
}

/** What failed has no addresses any more. */
function facts({ cluster, addresses, versions, failure }: Report): string {
  const shown = failure === undefined ? [...addresses, ...versions] : versions
  return table(['cluster', code(cluster ?? '')], shown.map(factRow))
}

function factRow({ what, value }: Fact): string[] {
  return [plain(what), code(value)]
}

function nodeRow({ name, cpus, memory }: Report['nodes'][number]): string[] {
  return [code(name), `${cpus}`, formatMemory(memory)]
}

function engineRow({ engine, nodes }: Report): string[][] {
  if (engine === undefined) return []
  const shared = nodes.length === 1 ? 'the engine' : 'the engine, which the nodes share'
  return [[`*${shared}*`, `*${engine.cpus}*`, `*${formatMemory(engine.memory)}*`]]
}

/** What is known of no image has no column. */
function images({ images }: Report): string {
  const rows = images.map(imageRow)
  const told = ['image', 'how it came', 'size', 'sent', 'took'].map((head, column) => ({ head, column }))
  const columns = told.filter(({ column }) => rows.some(row => row[column] !== ''))
  const only = (row: readonly string[]): string[] => columns.map(({ column }) => row[column] ?? '')
  return table(
    columns.map(({ head }) => head),
    few(rows.map(only), more => columns.map((_, column) => (column === 0 ? more : ''))),
  )
}

function imageRow({ reference, how, bytes, sent, ms }: Report['images'][number]): string[] {
  return [
    code(reference),
    plain(how),
    bytes === undefined ? '' : formatBytes(bytes),
    sent === undefined ? '' : formatBytes(sent),
    ms === undefined ? '' : formatDuration(ms),
  ]
}

function timeline(stages: readonly Stage[], draws: boolean): string {
  if (stages.length === 0) return ''
  return draws ? fenced(mermaidGantt(stages), 'mermaid') : fenced(textGantt(stages))
}

function few<T>(items: readonly T[], last: (more: string) => T): T[] {
  const more = items.length - MOST
  return more > 0 ? [...items.slice(0, MOST), last(`and ${more} more`)] : [...items]
}

/** Empty where there are no rows. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  return [line(head), `|${head.map(() => ':---|').join('')}`, ...rows.map(line)].join('\n')
}

/** Text that somebody else wrote, as code: nothing in it means anything to Markdown, a table or HTML. */
export function code(text: string): string {
  // A `|` ends a table's cell even here; such characters go as entities, which code spans do not know.
  return /^[^`|\\\r\n]+$/.test(text) ? `\`${text}\`` : `<code>${entities(text, /[^\w ./-]|_/g)}</code>`
}

/** Text that somebody else wrote, as text. Between colons a word might be an emoji, behind a dollar sign mathematics. */
export function plain(text: string): string {
  return entities(text.trim(), /[&<>`*_[\]{}()|~$\\#@!]|:(?=[\w+-]+:)/g)
}

function entities(text: string, which: RegExp): string {
  return text
    .split(/\r?\n/)
    .map(line => line.replace(which, character => `&#${character.codePointAt(0)};`))
    .join('<br>')
}

/** A block of code. The fence is longer than any in the text, so that the text cannot end it. */
export function fenced(text: string, language = ''): string {
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${text}\n${fence}`
}
