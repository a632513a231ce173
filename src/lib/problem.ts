/**
 * A failure whose message already tells the user what was found and what to do: one sentence, no stack.
 * Any other Error that reaches main is a defect of ours and is shown as one.
 */
export class Problem extends Error {
  override readonly name = 'Problem'
}

/** The message of anything that was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown)
}
