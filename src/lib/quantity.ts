const FACTORS: Readonly<Record<string, number>> = {
  ...{ '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12 },
  ...{ Ki: 1024, Mi: 1024 ** 2, Gi: 1024 ** 3, Ti: 1024 ** 4 },
}

/**
 * Reads a quantity as Kubernetes writes it: `2`, `500m`, `1.5`, `4Gi`, `512M`.
 * https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/
 *
 * @returns CPUs or bytes; undefined where it is none
 */
export function parseQuantity(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(m|k|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(text)
  if (match === null) return undefined
  const [, amount, unit = ''] = match
  // Divided: 2300 * 0.001 is not 2.3.
  return unit === 'm' ? Number(amount) / 1000 : Number(amount) * (FACTORS[unit] ?? 1)
}

/** Writes bytes of memory for people: `3.5 GiB`, `512 MiB`. */
export function formatMemory(bytes: number): string {
  const gib = bytes / 1024 ** 3
  return gib >= 1 ? `${Number(gib.toFixed(1))} GiB` : `${Math.round(bytes / 1024 ** 2)} MiB`
}

/** Writes bytes as a quantity that reads back as the same number: `4Gi` where it is whole, else `4194303Ki` or bytes. */
export function memoryQuantity(bytes: number): string {
  for (const unit of ['Gi', 'Mi', 'Ki']) {
    const amount = bytes / (FACTORS[unit] ?? 1)
    if (Number.isInteger(amount)) return `${amount}${unit}`
  }
  return `${Math.round(bytes)}`
}
