/** The docker CLI's arguments for images, and for their way into nodes. */
import { labelFlags } from './records.ts'

/** Prints the ids of the engine's images. */
export const imageIds: readonly string[] = ['image', 'ls', '--quiet', '--no-trunc']

/** Prints the id of each container's image, a line each. */
export const containerImages = (containers: readonly string[]): string[] => [
  'container',
  'inspect',
  '--format={{.Image}}',
  ...containers,
]

/** Prints a line of JSON for each image that the engine has, in the order asked for; fails, naming it, where it lacks one. */
export const inspectImages = (references: readonly string[]): string[] => [
  'image',
  'inspect',
  '--format={"tags":{{json .RepoTags}},"os":{{json .Os}},"architecture":{{json .Architecture}}}',
  '--',
  ...references,
]

/** Prints the architecture that an image is for; fails where the engine lacks it. */
export const imageArchitecture = (reference: string): string[] => [
  'image',
  'inspect',
  '--format={{.Architecture}}',
  '--',
  reference,
]

/** Gives an image one more name. */
export const tagImage = (name: string, other: string): string[] => ['tag', '--', name, other]

/** Takes a name from an image that has another. */
export const untagImage = (name: string): string[] => ['rmi', '--', name]

export const pull = (reference: string): string[] => ['pull', '--quiet', '--', reference]

export const saveImages = (references: readonly string[]): string[] => ['save', '--', ...references]

/** Prints an image's id; fails where the engine lacks it. */
export const imageId = (reference: string): string[] => ['image', 'inspect', '--format={{.Id}}', '--', reference]

/** Reads an archive, packed or not, into the engine. */
export const loadArchive = (path: string): string[] => ['load', '--quiet', `--input=${path}`]

/**
 * Prints a line of JSON for each image, in the order of the references: its id, its bytes, the digests of its unpacked layers, and
 * where they are unpacked: something in the classic store, null in containerd's.
 */
export const describeImages = (references: readonly string[]): string[] => [
  'image',
  'inspect',
  '--format={"id":{{json .Id}},"size":{{json .Size}},"layers":{{json .RootFS.Layers}},"unpacked":{{if .GraphDriver}}{{json .GraphDriver.Data}}{{else}}null{{end}}}',
  '--',
  ...references,
]

/** The exit code of an import that took too long, or waited too long for another one. */
export const TIMED_OUT = 124

/** What `inTurn` prints, before all that its command does. */
export const TURN = { waits: 'waits for its turn', begins: 'it is its turn' }

/**
 * Runs what brings images in a node when nothing else of the kind runs there, whoever began it, and ends it there too when it takes too
 * long: a killed docker CLI ends nothing. See `TURN` for what it prints.
 *
 * @param limit seconds
 */
export const inTurn = (limit: number, command: readonly string[]): string[] => [
  ...saying(TURN.waits),
  'flock',
  `--timeout=${limit}`,
  // As timeout has it.
  `--conflict-exit-code=${TIMED_OUT}`,
  '/run/kind-in-dind-import.lock',
  'timeout',
  '--kill-after=5',
  `${limit}`,
  ...saying(TURN.begins),
  ...command,
]

const saying = (words: string): string[] => ['sh', '-c', `echo ${words}; exec "$@"`, 'sh']

/**
 * Reads an image archive from stdin into containerd, where the kubelet looks (namespace k8s.io). With --digests the kubelet also
 * sees by which manifest an image came.
 */
export const ctrImport = (snapshotter: string): string[] => [
  'ctr',
  '--namespace=k8s.io',
  'images',
  'import',
  '--digests',
  `--snapshotter=${snapshotter}`,
  '-',
]

/** Does so in a node. @param limit seconds */
export const importImages = (node: string, snapshotter: string, limit: number): string[] => [
  'exec',
  '--interactive',
  node,
  ...inTurn(limit, ctrImport(snapshotter)),
]

/** Prints the id on the engine of each container's first process, and of its image, a line each. */
export const pidsAndImages = (containers: readonly string[]): string[] => [
  'inspect',
  '--format={{.State.Pid}} {{.Image}}',
  ...containers,
]

/** Runs a script of bash beside the engine: with its processes, and its socket as /engine.sock. */
export const runBeside = (given: {
  readonly name: string
  readonly image: string
  readonly labels: Readonly<Record<string, string>>
  readonly socket: string
  readonly script: string
  readonly args: readonly string[]
}): string[] => [
  'run',
  '--rm',
  '--pull=never',
  `--name=${given.name}`,
  ...labelFlags(given.labels),
  '--privileged',
  // As for nodes, where the engine has userns-remap.
  '--userns=host',
  '--pid=host',
  '--network=none',
  // As --mount and not as --volume, which would make an empty folder where there is none.
  `--mount=type=bind,"source=${given.socket.replaceAll('"', '""')}",target=/engine.sock`,
  '--entrypoint=bash',
  given.image,
  '-c',
  given.script,
  'beside',
  ...given.args,
]
