import { load } from './load.ts'
import { logs } from './logs.ts'
import { post } from './post.ts'
import { pre } from './pre.ts'
import { downStale, status } from './status.ts'

/** What the program does, by verb. */
export const STORIES = { pre, post, load, logs, status, 'down-stale': downStale }
