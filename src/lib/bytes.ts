/** Writes a number of bytes for people, in powers of 1000 as docker does: `228 MB`, `1.2 GB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB']
  let amount = bytes
  let unit = 0
  while (amount >= 999.5 && unit < units.length - 1) {
    amount /= 1000
    unit++
  }
  return `${amount < 9.95 && unit > 0 ? amount.toFixed(1) : Math.round(amount)} ${units[unit]}`
}
