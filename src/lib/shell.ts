/** Quotes a text so that a POSIX shell takes it as one word, whatever is in it. */
export function shellQuote(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}
