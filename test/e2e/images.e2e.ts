/**
 * Images on their way into the nodes: of both stores of the engine, into both containerds, from the engine and from archives.
 * What counts is that a pod which never pulls runs from each of them on each node.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { names } from './lab.ts'
import { labInputs } from './life.ts'
import { createGround, type Ended, engineVariables, type Ground } from './place.ts'

const { dind, dindNewest, node, nodeContainerd2, web } = names.images

/** Makes an image on top of the web server's, with a layer of its own that nothing packs. */
const BUILD = `
  build() { # FROM MEGABYTES NAME
    mkdir --parents /build && rm --force /build/*
    head --bytes "$2M" /dev/urandom >/build/data
    printf 'FROM %s\\nCOPY data /data\\n' "$1" >/build/Dockerfile
    DOCKER_BUILDKIT=0 docker build --quiet --tag "$3" /build >&2
  }
  archive() { # FILE PROGRAM NAME...
    local file=$1 program=$2
    shift 2
    docker save "$@" | $program >"$file"
    docker image rm "$@" >&2
  }`

/** Makes of an archive what engines before OCI layouts wrote: a folder for each layer, and manifest.json alone tells of them. */
const LEGACY = `
  const { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } = require('node:fs')
  const images = JSON.parse(readFileSync('manifest.json')).map(image => {
    const Config = image.Config.replace(/.*[/]/, '') + '.json'
    renameSync(image.Config, Config)
    const Layers = image.Layers.map(layer => {
      const folder = layer.replace(/.*[/]/, '')
      mkdirSync(folder)
      renameSync(layer, folder + '/layer.tar')
      return folder + '/layer.tar'
    })
    return { Config, RepoTags: image.RepoTags, Layers }
  })
  writeFileSync('manifest.json', JSON.stringify(images))
  for (const path of ['blobs', 'index.json', 'oci-layout', 'repositories']) rmSync(path, { recursive: true, force: true })`

const ZSTD = `node -e process.stdin.pipe(require('node:zlib').createZstdCompress()).pipe(process.stdout)`

/** Three nodes take 1 GiB each; the step has no room for it. */
const BIG = { image: 'big:1', megabytes: 1024, room: '100m' }

let ground: Ground
beforeAll(async () => {
  ground = await createGround()
})
afterAll(() => ground?.remove())

describe.each([
  {
    place: 'classic',
    engine: 'the classic store, containerd 1.7 in the nodes',
    sidecar: { image: dind, images: [node, web] },
    nodeImage: node,
    workers: 2,
    prepare: `
      docker run --name big --entrypoint sh ${web} -c 'dd if=/dev/urandom of=/big bs=1M count=${BIG.megabytes}' >&2
      docker commit --change 'ENTRYPOINT ["web"]' --change 'CMD []' big ${BIG.image} >&2
      docker rm big >&2`,
    more: [BIG.image],
  },
  {
    place: 'containerd',
    engine: "containerd's store, containerd 2 in the nodes",
    sidecar: {
      image: dindNewest,
      images: [nodeContainerd2, web],
      arguments: ['--feature', 'containerd-snapshotter=true'],
    },
    nodeImage: '/archives/node.tar',
    workers: 0,
    prepare: `
      archive /archives/node.tar cat ${nodeContainerd2}
      mkdir /multi
      printf 'FROM --platform=linux/amd64 %s AS web\\nFROM scratch\\nCOPY --from=web / /\\nARG TARGETARCH\\nENV FOR=$TARGETARCH\\nCMD ["web"]\\n' \\
        ${web} >/multi/Dockerfile
      docker buildx build --platform linux/amd64,linux/arm64 --tag multi:1 --load /multi >&2
      build ${web} 120 large:1`,
    more: ['multi:1', 'large:1'],
  },
])('$engine', ({ place, sidecar, nodeImage, workers, prepare: own, more }) => {
  const references = ['app:1', 'app:2', ...more]
  const archived = ['plain:1', 'packed:1', 'packed:2', 'zstd:latest', 'legacy:1']
  const archives = ['/archives/plain.tar', '/archives/packed.tar.gz', '/archives/zstd.tar.zst', '/archives/legacy.tar']
  let job: GitHubJob
  let use: Use

  beforeAll(async () => {
    await ground.startSidecar(place, { tls: false, aliases: [place], ...sidecar })
    const step = await ground.startStep(`${place}-step`, {
      variables: engineVariables(place, false),
      flags: ['--tmpfs', `/room:size=${BIG.room}`],
    })
    job = await startGitHubJob(step, { id: place })
    await prepared(`
      build ${web} 20 base:1; build base:1 1 app:1; build base:1 1 app:2
      for image in ${archived.join(' ')}; do build base:1 1 "$image"; done
      docker image rm base:1 >&2
      mkdir /archives
      archive /archives/plain.tar cat plain:1
      archive /archives/packed.tar.gz gzip packed:1 packed:2
      archive /archives/zstd.tar.zst "${ZSTD}" zstd:latest
      archive /archives/new.tar cat legacy:1
      mkdir /legacy && cd /legacy && tar --extract --file /archives/new.tar
      node -e "$LEGACY"
      tar --create --file /archives/legacy.tar *
      ${own}`)
    use = await job.use(
      {
        ...labInputs(ground),
        'node-image': nodeImage,
        workers: `${workers}`,
        images: [...references, ...archives].join(),
      },
      { TMPDIR: '/room' },
    )
    expect(use.code, use.log).toBe(0)
  })

  async function prepared(script: string): Promise<void> {
    const { code, log } = await job.run(`set -e${BUILD}\nLEGACY=$(cat)\n${script}`, { input: LEGACY })
    expect(code, log).toBe(0)
  }

  it('runs a pod that never pulls from each image on each node', async () => {
    const { stdout } = await job.run("kubectl get nodes --output jsonpath='{.items[*].metadata.name}'")
    const nodes = stdout.trim().split(' ')
    expect(nodes).toHaveLength(workers + 1)
    const pods = nodes.flatMap((nodeName, index) =>
      [...references, ...archived].map(image => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `${image.replace(':', '-')}-${index}` },
        spec: {
          nodeName,
          containers: [{ name: 'one', image, imagePullPolicy: 'Never' }],
          terminationGracePeriodSeconds: 0,
        },
      })),
    )
    const { code, log } = await job.run(
      'kubectl apply --filename - >&2 && kubectl wait pods --all --for condition=Ready --timeout 3m || kubectl get pods --output wide',
      { input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: pods }) },
    )
    expect(code, log).toBe(0)
    expect(log.match(/condition met/g), log).toHaveLength(pods.length)
  })

  it('tells of each how it came', () => {
    // So much goes beside the engine, where nobody counts what is sent.
    for (const image of references)
      expect(use.log).toMatch(new RegExp(`^${image}: loaded into \\d nodes?, [\\d.]+ [MG]B each in `, 'm'))
    for (const image of archived) expect(use.log).toMatch(new RegExp(`${image} \\(/archives/.*\\): loaded into `))
  })

  it('does not send a layer that the nodes have: the base came once', () => {
    // Each has 1 MB of its own, and the base of 20 MB came with the first.
    expect(use.log).toMatch(/^plain:1 \(.*\): loaded into \d nodes?, sent [1-3]\.\d MB of /m)
  })

  it('warns that pods pull latest again, which is in an archive', () => {
    expect(annotations(use, 'warning'), use.log).toEqual([
      expect.stringMatching(/^images: pods pull zstd:latest again .* imagePullPolicy/),
    ])
  })

  it('takes turns with another load of the job', async () => {
    await prepared(`build ${web} 60 left:1; build ${web} 60 right:1`)
    const both = ['left:1', 'right:1']
    const loads = await Promise.all(both.map(images => job.useSub('load', { images })))
    for (const [index, { code, log }] of loads.entries()) {
      expect(code, log).toBe(0)
      expect(log).toMatch(new RegExp(`^${both[index]}: loaded into ${workers + 1} nodes?, `, 'm'))
    }
  })

  it('finds all there when they are loaded again', async () => {
    const again = await job.useSub('load', { images: [...references, ...archives].join() })
    expect(again.code, again.log).toBe(0)
    expect(again.log.match(/: every node had it$/gm), again.log).toHaveLength(references.length + archived.length)
  })

  const hangs = async (): Promise<void> => {
    await prepared(`build ${web} 40 late:1`)
    const cluster = use.outputs['name']
    const onNode = (role: string, command: string): Promise<Ended> =>
      job.run(`docker exec ${cluster}-${role} ${command}`)
    const signal = (name: string): Promise<Ended> =>
      onNode('worker2', `systemctl kill --kill-whom=main --signal=${name} containerd`)
    await signal('STOP')
    const load = await job.useSub('load', { images: 'late:1' }).finally(() => signal('CONT'))
    expect(load.code, load.log).toBe(1)
    expect(annotations(load, 'error'), load.log).toEqual([
      expect.stringMatching(new RegExp(`^images: the import failed in ${cluster}-worker2: [^;]*containerd`)),
    ])
    const again = await job.useSub('load', { images: 'late:1' })
    expect(again.code, again.log).toBe(0)
    expect(again.log).toMatch(/^late:1: loaded into 1 node, .*, 2 had it$/m)
  }
  if (workers > 0) it('names a node that hangs, and the others have all', hangs)

  it('brings what is little through the step', async () => {
    await prepared(`build ${web} 40 little:1`)
    const { code, log } = await job.useSub('load', { images: 'little:1' })
    expect(code, log).toBe(0)
    expect(log).toMatch(/^little:1: loaded into \d nodes?, sent (?:[4-9]\d|1\d\d) MB of /m)
  })

  it('names archives that are broken, before anything is made', async () => {
    await prepared(`
      head --bytes 1000000 /archives/plain.tar >/archives/cut.tar
      head --bytes 1000000 /archives/packed.tar.gz >/archives/cut.tar.gz
      head --bytes 1000 /dev/zero >/archives/other.tar`)
    const broken = ['/archives/cut.tar', '/archives/cut.tar.gz', '/archives/other.tar', '/archives/gone.tar']
    const refused = await job.use({ ...labInputs(ground), 'node-image': nodeImage, images: broken.join() })
    expect(refused.code, refused.log).toBe(1)
    for (const path of broken) expect(refused.log).toContain(`images: ${path} `)
    expect(refused.log).not.toContain('Create the cluster')
  })

  if (nodeImage.endsWith('.tar')) {
    it('took the node image from its archive', () => {
      expect(use.log).toMatch(/^Loading the node image \S+ from \/archives\/node\.tar$/m)
    })
  }

  it('removes all of it', async () => {
    const post = await job.post(use)
    expect(post.code, post.log).toBe(0)
  })
})
