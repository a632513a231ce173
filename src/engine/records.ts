/** The docker CLI's arguments for records and labels: by them what belongs to a use is told from all else on an engine. */
import { KIND_CLUSTER_LABEL, LABEL, type Plan } from '../plan.ts'

export const labelFlags = (labels: Readonly<Record<string, string>>): string[] =>
  Object.entries(labels).flatMap(([key, value]) => ['--label', `${key}=${value}`])

export const createRecord = (plan: Plan): string[] => ['volume', 'create', ...labelFlags(plan.labels), plan.record]

/** Prints the names of the records of clusters that are on a network, or will be. */
export const recordsOn = (network: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.cluster}`,
  `--filter=label=${LABEL.network}=${network}`,
]

/** Marks a network as one that may go at any moment: with an empty volume, which all that use the engine can see. */
export const createMark = (mark: string, network: string): string[] => [
  'volume',
  'create',
  ...labelFlags({ [LABEL.leaving]: network }),
  mark,
]

/** Prints the names of a network's marks. */
export const marksOn = (network: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.leaving}=${network}`,
]

/** Prints the name of a use's record; nothing where it is gone. */
export const recordOf = ({ record, use }: Pick<Plan, 'record' | 'use'>): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=name=^${record}$`,
  `--filter=label=${LABEL.use}=${use}`,
]

/** Prints the labels of a cluster's record as JSON; fails where there is no such record. */
export const recordLabels = (record: string): string[] => ['volume', 'inspect', '--format={{json .Labels}}', record]

/** Prints the ids of a cluster's node containers: kind cannot put our labels on them, they carry its own. */
export const clusterContainers = (cluster: string): string[] => containersLabelled(KIND_CLUSTER_LABEL, cluster)

/** Prints the ids of the containers that this program itself ran for a cluster: its registry. */
export const clusterServices = (cluster: string): string[] => containersLabelled(LABEL.cluster, cluster)

const containersLabelled = (key: string, value: string): string[] => [
  'ps',
  '--all',
  '--quiet',
  '--no-trunc',
  `--filter=label=${key}=${value}`,
]

/** Prints the ids of what carries the label of one use: of its networks, or of the containers that this program itself ran. */
export const networksOf = (use: string): string[] => ['network', 'ls', '--quiet', `--filter=label=${LABEL.use}=${use}`]

export const servicesOf = (use: string): string[] => containersLabelled(LABEL.use, use)

/** Prints the names of the volumes that carry a cluster's label, its record among them. */
export const clusterVolumes = (cluster: string): string[] => [
  'volume',
  'ls',
  '--quiet',
  `--filter=label=${LABEL.cluster}=${cluster}`,
]

/** A line of JSON of each thing, with some of its fields and all labels of ours. */
const jsonLine = (fields: Readonly<Record<string, string>>): string => {
  const labels = Object.fromEntries(Object.values(LABEL).map(key => [key, `(.Label "${key}")`]))
  const object = (of: Readonly<Record<string, string>>): string =>
    Object.entries(of)
      .map(([key, value]) => `"${key}": {{json ${value}}}`)
      .join(', ')
  return `--format={ ${object(fields)}, "labels": { ${object(labels)} } }`
}

/** Prints a line of JSON of every container on the engine; an absent label is an empty one. */
export const surveyContainers: readonly string[] = [
  'ps',
  '--all',
  '--no-trunc',
  jsonLine({
    id: '.ID',
    name: '.Names',
    state: '.State',
    networks: '.Networks',
    kind: `(.Label "${KIND_CLUSTER_LABEL}")`,
  }),
]

/** Prints a line of JSON of every network of ours. */
export const surveyNetworks: readonly string[] = [
  'network',
  'ls',
  '--no-trunc',
  `--filter=label=${LABEL.cluster}`,
  jsonLine({ id: '.ID', name: '.Name' }),
]

/** Prints a line of JSON of every volume of ours. */
export const surveyVolumes: readonly string[] = [
  'volume',
  'ls',
  `--filter=label=${LABEL.cluster}`,
  jsonLine({ id: '.Name', name: '.Name' }),
]

/** Prints the ids of the networks that carry a cluster's label. */
export const clusterNetworks = (cluster: string): string[] => [
  'network',
  'ls',
  '--quiet',
  '--no-trunc',
  `--filter=label=${LABEL.cluster}=${cluster}`,
]

export const removeVolumes = (names: readonly string[]): string[] => ['volume', 'rm', '--force', ...names]
