/**
 * Waits for work, and no longer than the limit. The work itself goes on unheard then, and its own failure is nobody's.
 *
 * @param limit milliseconds
 * @param late what is thrown at the limit: it says what was waited for, and how long
 */
export async function within<T>(limit: number, work: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), limit)
  })
  work.catch(() => {})
  return Promise.race([work, tooLate]).finally(() => clearTimeout(timer))
}
