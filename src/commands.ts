/** The commands of `kind-in-dind`, each with its options; `load` is a sub-action too. Pure. */
import { boolean, duration, type Given, isAbsent, list, readGiven, show, text } from './lib/given.ts'
import { Problem } from './lib/problem.ts'
import { clusterName, dockerHost, images, OPTIONS, type Option } from './options.ts'
import type { Output } from './outputs.ts'

export interface Command {
  readonly name: 'up' | 'down' | 'load' | 'logs' | 'status'
  /** What stands after the name, for the help. */
  readonly synopsis: string
  readonly sentence: string
  readonly options: readonly Option[]
  /** The option that words without a flag belong to. */
  readonly words?: string
  /** What the sub-action of this name gives to later steps. */
  readonly outputs?: readonly Output[]
}

const NAME: Option = {
  name: 'name',
  schema: 'name',
  default: "the job's latest",
  sentence: 'The cluster, where the job has several.',
}

/** How up finds the engine, for commands that may run without a cluster of their own. */
const ENGINE: readonly Option[] = OPTIONS.filter(({ name }) => name === 'docker-host' || name === 'docker-wait')

export const COMMANDS: readonly Command[] = [
  {
    name: 'up',
    synopsis: '[--OPTION VALUE]...',
    sentence:
      'Start a cluster. Its variables go to stdout, the log to stderr: exports="$(kind-in-dind up)" && eval "$exports"',
    options: OPTIONS,
  },
  {
    name: 'down',
    synopsis: '[--name NAME] | --stale',
    sentence: "Remove it: the one named, else this shell's, else the only one.",
    options: [
      NAME,
      {
        name: 'stale',
        schema: 'boolean',
        default: 'false',
        sentence:
          'Remove what other jobs left on the engine instead: what is past its expiry or of a job that is over.',
      },
      ...ENGINE,
    ],
  },
  {
    name: 'load',
    synopsis: 'IMAGE... [--nodes NODE]... [--name NAME]',
    sentence: "Load images into a running cluster's nodes.",
    options: [
      { name: 'images', schema: 'list', default: '', sentence: 'What to load, as the option `images` of up takes it.' },
      { name: 'nodes', schema: 'list', default: 'all', sentence: 'The nodes to load into.' },
      NAME,
    ],
    words: 'images',
  },
  {
    name: 'logs',
    synopsis: '[DIR] [--name NAME]',
    sentence: "Export a cluster's logs, events and what is not ready, without secrets, also after a failed start.",
    options: [
      {
        name: 'logs-dir',
        schema: 'string',
        default: 'where the option `logs-dir` of up says',
        sentence: 'The folder to write them to.',
      },
      NAME,
    ],
    words: 'logs-dir',
    outputs: [
      { name: 'logs-dir', sentence: 'The folder with the logs; empty where there are none.' },
      {
        name: 'artifact-name',
        sentence: 'A name for them that no other job of the run has, those of a matrix included.',
      },
    ],
  },
  {
    name: 'status',
    synopsis: '[--json] [--docker-host ADDRESS]',
    sentence: 'List the clusters on the engine, and whose they are.',
    options: [
      {
        name: 'json',
        schema: 'boolean',
        default: 'false',
        sentence: 'Print it as JSON, for programs and bug reports.',
      },
      ...ENGINE,
    ],
  },
]

export interface LoadOptions {
  readonly images: readonly string[]
  /** Empty for all. */
  readonly nodes: readonly string[]
  readonly name: string | undefined
}

/**
 * Parses what the command or sub-action `load` was given.
 *
 * @throws Problem with one line for each option that is wrong
 */
export function parseLoad(given: Readonly<Record<string, Given>>): LoadOptions {
  const { option, refuse, finish } = readGiven(given, optionsOf('load'))
  const options = {
    images: option('images', someImages, []),
    nodes: option('nodes', list, []),
    name: option('name', clusterName, undefined),
  }
  if (isAbsent(given['images'])) refuse(`images: ${NONE}`)
  return finish(options)
}

export interface LogsOptions {
  /** As given: relative to where the command runs. */
  readonly logsDir: string | undefined
  readonly name: string | undefined
}

/**
 * Parses what the command or sub-action `logs` was given.
 *
 * @throws Problem with one line for each option that is wrong
 */
export function parseLogs(given: Readonly<Record<string, Given>>): LogsOptions {
  const { option, finish } = readGiven(given, optionsOf('logs'))
  return finish({
    logsDir: option('logs-dir', oneText, undefined),
    name: option('name', clusterName, undefined),
  })
}

/** A text, or the only word of a command line. */
function oneText(value: Given): string | undefined {
  if (!Array.isArray(value)) return text(value)
  if (value.length > 1) throw new Problem(`one folder is enough, and there are ${value.map(show).join(', ')}`)
  return value.length === 0 ? undefined : text(value[0] as Given)
}

/** Which engine a command looks at. */
export interface EngineOptions {
  readonly dockerHost: string | undefined
  /** Milliseconds. */
  readonly dockerWait: number
}

/**
 * Parses what `status` or `down --stale` was given.
 *
 * @throws Problem with one line for each option that is wrong
 */
export function parseEngineOptions(
  command: 'status' | 'down',
  given: Readonly<Record<string, Given>>,
): EngineOptions & { readonly json: boolean } {
  const { option, refuse, finish } = readGiven(given, optionsOf(command))
  if (!isAbsent(given['name'])) refuse('name: --stale goes by what is over, not by a name; give one of the two')
  return finish({
    dockerHost: option('docker-host', dockerHost, undefined),
    dockerWait: option('docker-wait', duration, 60_000),
    json: option('json', boolean, false),
  })
}

const NONE = 'none is named; say which, such as app:ci'

function someImages(value: Given): string[] {
  const some = images(value)
  if (some.length === 0) throw new Problem(NONE)
  return some
}

/** The nodes that were asked for, as kind names them, or by what stands after the cluster's name: `worker2`. */
export function chooseNodes(wanted: readonly string[], nodes: readonly string[], cluster: string): readonly string[] {
  if (wanted.length === 0) return nodes
  return wanted.map(word => {
    const found = nodes.find(node => node === word || node === `${cluster}-${word}`)
    if (found === undefined) throw new Problem(`nodes: there is no node ${show(word)}; there are ${nodes.join(', ')}`)
    return found
  })
}

function optionsOf(name: Command['name']): string[] {
  return COMMANDS.filter(command => command.name === name).flatMap(command => command.options.map(one => one.name))
}
