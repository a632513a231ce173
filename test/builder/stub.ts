/** A program in the place of buildx: a shell script that notes what it is given. */
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Buildx, buildxAt } from '../../src/builder/buildx.ts'
import { createRunner } from '../../src/lib/run.ts'

export interface Stub {
  readonly buildx: Buildx
  /** A folder of the test's own. */
  readonly folder: string
  /** Each command that was run, as one line. */
  commands(): string[]
  remove(): void
}

/** @param script what it does; $* are its arguments */
export function stubBuildx(script: string): Stub {
  const folder = mkdtempSync(join(tmpdir(), 'buildx-'))
  const program = join(folder, 'buildx')
  writeFileSync(program, `#!/bin/sh\necho "$*" >>${folder}/log\n${script}\n`)
  chmodSync(program, 0o755)
  return {
    buildx: buildxAt(program, undefined, createRunner({ env: process.env })),
    folder,
    commands: () => readFileSync(join(folder, 'log'), 'utf8').trim().split('\n'),
    remove: () => rmSync(folder, { recursive: true }),
  }
}
