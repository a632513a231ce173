const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/**
 * Reads a duration as Go and kubectl write it: `90s`, `5m`, `1h30m`, `1.5h`, or `0`.
 *
 * @returns milliseconds, or undefined where the text is no duration. A bare number other than 0 is none: it names no unit.
 */
export function parseDuration(text: string): number | undefined {
  if (text === '0') return 0
  if (!/^(\d+(\.\d+)?(ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)) {
    total += Number(amount) * (UNITS[unit ?? ''] ?? 0)
  }
  return Math.round(total)
}

/** Writes milliseconds for people: `0.4s`, `12.3s`, `2m05s`, `1h02m`. */
export function formatDuration(ms: number): string {
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)}s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${String(seconds % 60).padStart(2, '0')}s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`
}
