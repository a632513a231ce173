/** The commands of `kind-in-dind`, each with its options; `load` is a sub-action too. Pure. */
import { type Given, isAbsent, list, readGiven, show, text } from './lib/given.ts'
import { Problem } from './lib/problem.ts'
import { clusterName, images, OPTIONS, type Option } from './options.ts'
import type { Output } from './outputs.ts'

export interface Command {
  readonly name: 'up' | 'down' | 'load' | 'logs'
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
    synopsis: '[--name NAME]',
    sentence: "Remove it: the one named, else this shell's, else the only one.",
    options: [NAME],
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
