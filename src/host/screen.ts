/** Goes back to the line's beginning and clears it. */
const CLEAR = '\r\u001b[K'

/** Lines on a terminal, of which the last may move: what comes next is written over it. */
export interface Screen {
  print(line: string): void
  move(line: string): void
}

/**
 * @param write writes to the terminal as it is
 * @param columns how wide it is; a line that is wider could not be cleared
 */
export function createScreen(write: (text: string) => void, columns: () => number): Screen {
  let moves = false
  return {
    print: line => {
      write(`${moves ? CLEAR : ''}${line}\n`)
      moves = false
    },
    move: line => {
      write(`${CLEAR}${line.slice(0, Math.max(columns() - 1, 0))}`)
      moves = true
    },
  }
}
