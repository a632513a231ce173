/** A timeline as a picture: what took how long, and what went on beside it. Pure. */
import { formatDuration } from '../lib/duration.ts'
import { closed, type Span } from '../lib/timeline.ts'

/** A stage that is shown. Milliseconds. */
export type Stage = Span & { readonly end: number }

/** Stages that are a smaller part of all say nothing, unless one failed. */
const SMALLEST = 1 / 200

/** The stages that are worth a line, in the order in which they began. */
export function shownStages(spans: readonly Span[], now: number): Stage[] {
  const all = closed(spans, now)
  const total = Math.max(0, ...all.map(({ end }) => end))
  return all
    .filter(({ start, end, failed }) => failed || end - start >= total * SMALLEST)
    .sort((a, b) => a.start - b.start)
}

/**
 * The stage in which it failed: of those that failed the one that ended first, since its failure ended the others; of those that
 * ended together the one that began last, for it is part of the others.
 */
export function failedStage(stages: readonly Stage[]): Stage | undefined {
  return stages.filter(({ failed }) => failed).sort((a, b) => a.end - b.end || b.start - a.start)[0]
}

/**
 * A Gantt chart for Mermaid, which GitHub draws. Each stage is a section, so that its name stands at the left and its time
 * on the bar. Times are seconds since 1970 on the axis (%s): minutes would move with the reader's time zone.
 * https://mermaid.js.org/syntax/gantt.html
 */
export function mermaidGantt(stages: readonly Stage[]): string {
  // By default names have 75 pixels; at Mermaid's 11 pixels a character takes some 6.
  const left = 20 + 6 * Math.max(0, ...stages.map(({ name }) => name.length))
  const settings = { gantt: { leftPadding: left, rightPadding: 10 } }
  const lines = [`%%{init: ${JSON.stringify(settings)}}%%`, 'gantt', '    dateFormat x', '    axisFormat %s s']
  for (const { name, start, end, failed } of stages) {
    // Colons, semicolons and hashes mean something to Mermaid in either place.
    lines.push(`    section ${name.replace(/[:;#%\s]+/g, ' ')}`)
    lines.push(
      `    ${formatDuration(end - start)} :${failed ? 'crit, ' : ''}${Math.round(start)}, ${Math.max(Math.round(end), Math.round(start) + 1)}`,
    )
  }
  return lines.join('\n')
}

/** As lines of text with a bar each, for where nothing draws. @param width characters of the longest bar possible */
export function textGantt(stages: readonly Stage[], width = 48): string {
  const total = Math.max(1, ...stages.map(({ end }) => end))
  const names = Math.max(0, ...stages.map(({ name }) => name.length))
  return stages
    .map(({ name, start, end, failed }) => {
      const from = Math.min(width - 1, Math.floor((start / total) * width))
      const length = Math.max(1, Math.min(width, Math.ceil((end / total) * width)) - from)
      const bar = `${' '.repeat(from)}${(failed ? '▒' : '█').repeat(length)}`.padEnd(width)
      return `${name.padEnd(names)} ${formatDuration(end - start).padStart(7)} │${bar}${failed ? '│ failed' : '│'}`
    })
    .join('\n')
}
