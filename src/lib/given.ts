/** The values that hosts hand over, and how each kind of them is read. Pure. */
import { parseDuration } from './duration.ts'
import { Problem } from './problem.ts'
import { parseQuantity } from './quantity.ts'

/** A value as a host hands it over: GitHub and a shell give strings, Buildkite gives what the pipeline's YAML held. */
export type Given = string | number | boolean | null | undefined | readonly Given[] | { readonly [key: string]: Given }

/** Reads values one by one; what is wrong with them is said at the end, all at once. */
export interface Reader {
  /** Reads one value; an absent one, or one that is wrong, gives `otherwise`. */
  option<T>(name: string, read: (value: Given) => T, otherwise: T): T
  /** Notes something that is wrong. */
  refuse(sentence: string): void
  /** @throws Problem with one line for each thing that is wrong */
  finish<T>(result: T): T
}

/**
 * @param given values by name
 * @param known the names that there are; any other is wrong
 */
export function readGiven(given: Readonly<Record<string, Given>>, known: readonly string[]): Reader {
  const problems = Object.keys(given)
    .filter(name => !known.includes(name))
    .map(name => unknownOption(name, known))
  return {
    option: (name, read, otherwise) => {
      const value = given[name]
      if (isAbsent(value)) return otherwise
      try {
        return read(value)
      } catch (thrown) {
        if (!(thrown instanceof Problem)) throw thrown
        problems.push(`${name}: ${thrown.message}`)
        return otherwise
      }
    },
    refuse: sentence => void problems.push(sentence),
    finish: result => {
      if (problems.length > 0) throw new Problem(problems.join('\n'))
      return result
    },
  }
}

/** YAML's null, and an empty text as hosts hand it over for an input that is not given. */
export function isAbsent(value: Given): boolean {
  return value === undefined || value === null || (typeof value === 'string' && value.trim() === '')
}

function unknownOption(name: string, known: readonly string[]): string {
  const near = known
    .map(other => ({ name: other, distance: editDistance(name, other) }))
    .filter(candidate => candidate.distance <= Math.min(3, name.length / 2))
    .sort((a, b) => a.distance - b.distance)[0]
  return near ? `${name}: no such option; ${near.name} is meant?` : `${name}: no such option`
}

/** Levenshtein's distance, for "is meant?". */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, replaced))
    }
    row = next
  }
  return row[b.length] ?? 0
}

/** A value as people see it; a user and password in a URL stay out of the log. */
export function show(value: Given): string {
  return (JSON.stringify(value) ?? String(value)).replace(/:\/\/[^/@\s"]*@/g, '://***@')
}

export function text(value: Given): string {
  if (value === true) throw new Problem('a value is missing')
  if (typeof value !== 'string') throw new Problem(`${show(value)} is not text`)
  return value.trim()
}

export function boolean(value: Given): boolean {
  if (typeof value === 'boolean') return value
  const word = typeof value === 'string' ? value.trim().toLowerCase() : ''
  if (word === 'true') return true
  if (word === 'false') return false
  throw new Problem(`${show(value)} is neither true nor false`)
}

export function integer(value: Given, least: number, most: number): number {
  const number = typeof value === 'string' && /^\s*-?\d+\s*$/.test(value) ? Number(value) : value
  if (value === true) throw new Problem('a value is missing')
  if (typeof number !== 'number' || !Number.isInteger(number)) throw new Problem(`${show(value)} is not a whole number`)
  if (number < least || number > most) throw new Problem(`${number} is not between ${least} and ${most}`)
  return number
}

const HOUR = 3_600_000
/** Milliseconds. Timers of Node end at 25 days, jobs before. */
const LONGEST = 24 * HOUR

/** @param longest milliseconds */
export function duration(value: Given, longest = LONGEST): number {
  const ms = value === 0 ? 0 : typeof value === 'string' ? parseDuration(value.trim()) : undefined
  if (ms === undefined) throw new Problem(`${show(value)} is not a duration; write it with its unit, such as 90s or 5m`)
  if (ms > longest) throw new Problem(`${show(value)} is longer than a job may take; at most ${longest / HOUR}h`)
  return ms
}

export function quantity(value: Given, example: string): number {
  const word = typeof value === 'number' ? String(value) : text(value)
  const amount = parseQuantity(word)
  if (amount === undefined || amount <= 0) throw new Problem(`${show(value)} is not a quantity ${example}`)
  return amount
}

export function memoryQuantity(value: Given): number {
  const bytes = quantity(value, 'such as 4Gi or 512Mi')
  if (bytes < 1e6)
    throw new Problem(
      `${show(value)} is ${bytes} bytes; write the unit, such as ${show(value).replace(/[^\d.]/g, '')}Gi`,
    )
  return bytes
}

/** Lines or commas; on Buildkite also arrays. Order is kept, repetitions are not. */
export function list(value: Given): string[] {
  const items = Array.isArray(value) ? value : [value]
  const words = items.flatMap(item => {
    if (typeof item === 'number') return [String(item)]
    if (typeof item !== 'string') throw new Problem(`${show(item)} is not text`)
    return item.split(/[\n,]/)
  })
  return [...new Set(words.map(word => word.trim()).filter(word => word !== ''))]
}

/** A version, which YAML may have read as a number. */
export function versionText(value: Given): string {
  return typeof value === 'number' ? String(value) : text(value)
}
