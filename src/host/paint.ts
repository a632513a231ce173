import type { Environment } from './host.ts'

/** Colours of lines in a log. */
export interface Paint {
  good(line: string): string
  bad(line: string): string
  warn(line: string): string
  strong(line: string): string
}

/**
 * ANSI colours, where the log shows them: CI hosts render them in their pages, a terminal is asked (`shows`). Nobody gets
 * any who sets NO_COLOR (https://no-color.org).
 */
export function paint(env: Environment, shows: boolean): Paint {
  const on = shows && !env['NO_COLOR']
  const as = (code: number) => (line: string) => (on ? `\u001b[${code}m${line}\u001b[0m` : line)
  return { good: as(32), bad: as(31), warn: as(33), strong: as(1) }
}
