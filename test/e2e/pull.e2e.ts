/**
 * Images that the engine lacks: it pulls them from registries that are busy, want a login or refuse, and whichever way an image is
 * named, pods that may not pull run from it. On an engine with the classic store and on one with containerd's.
 */
import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { docker, listing, names, until } from './lab.ts'
import { labInputs } from './life.ts'
import { createGround, engineVariables, type Ground, prepare, type Sidecar, type Step } from './place.ts'
import { type RegistryStub, startRegistryStub } from './registry-stub.ts'

const { node, web, registry, dind, dindNewest, step: stepImage } = names.images

const PASSWORD = 's3cr3t-of-the-registry'
const LOGIN = `me:${PASSWORD}`

const ENGINES = {
  classic: { image: dind, images: [node, web], arguments: [] },
  containerd: { image: dindNewest, images: [node], arguments: ['--feature', 'containerd-snapshotter=true'] },
} as const
type Store = keyof typeof ENGINES

/** An engine with registries that it takes for its own loopback's, where engines ask for no TLS. */
interface Place {
  readonly sidecar: Sidecar
  readonly open: RegistryStub
  /** Wants a login. */
  readonly guarded: RegistryStub
  readonly relay: string
}

let ground: Ground
let step: Step
let places: Readonly<Record<Store, Place>>
/** Of app:v1, as the real registry has it: layers are compressed there, and not in what an engine saves. */
let digest: string
/** Of app:multi, which is for two platforms. */
let multi: string

beforeAll(async () => {
  ground = await createGround()
  const real = await ground.startContainer('registry', registry)
  const address = '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{.Gateway}}{{end}}'
  const [ip, gateway = ''] = (await docker('inspect', '--format', address, real)).trim().split(' ')
  const upstream = `http://${ip}:5000`
  const begin = async (store: Store): Promise<Place> => {
    const given = { address: gateway, upstream }
    const [sidecar, open, guarded] = await Promise.all([
      ground.startSidecar(store, { tls: false, aliases: [store], ...ENGINES[store] }),
      startRegistryStub(given),
      startRegistryStub({ ...given, credentials: LOGIN }),
    ])
    const relay = `${sidecar.name}-relay`
    const script = `for (const port of [${open.port}, ${guarded.port}]) require('net').createServer(from => {
      const to = require('net').connect(port, '${gateway}')
      for (const [one, other] of [[from, to], [to, from]]) one.pipe(other).on('error', () => one.destroy())
    }).listen(port, '127.0.0.1')`
    const network = `container:${sidecar.name}`
    await docker(
      ...['run', '--detach', '--name', relay, '--network', network, '--entrypoint', 'node', stepImage],
      ...['-e', script],
    )
    return { sidecar, open, guarded, relay }
  }
  const [classic, containerd] = await Promise.all([begin('classic'), begin('containerd')])
  places = { classic, containerd }
  const app = `127.0.0.1:${classic.open.port}/app:v1`
  await classic.sidecar.docker('tag', web, app)
  await until('the registry takes a push', 20_000, () => classic.sidecar.docker('push', app))
  await classic.sidecar.docker('rmi', app, web)
  ;({ digest, multi } = await addPlatform(`${upstream}/v2/app`))
  step = await ground.startStep('step', { variables: engineVariables('classic', false) })
  await prepare(
    step,
    `mkdir -p /logged-in /helped
    auth=$(printf %s '${LOGIN}' | base64)
    printf '{"auths": {"127.0.0.1:%s": {"auth": "%s"}}, "credHelpers": {"127.0.0.1:%s": "of-the-sun"}}' \
      ${classic.guarded.port} "$auth" ${containerd.guarded.port} >/logged-in/config.json
    helper=/usr/local/bin/docker-credential-of-the-sun
    cat >$helper <<'END'
#!/bin/sh
[ "$1" = get ] && printf '{"ServerURL": "%s", "Username": "me", "Secret": "${PASSWORD}"}' "$(cat)"
END
    chmod 755 $helper
    printf '{"credsStore": "of-the-moon"}' >/helped/config.json
    chmod 600 /logged-in/config.json`,
  )
})

afterAll(async () => {
  for (const { open, guarded, relay } of Object.values(places ?? {})) {
    await Promise.all([open.close(), guarded.close(), docker('rm', '--force', relay)])
  }
  await ground?.remove()
})

/**
 * Gives app:v1 a twin for another architecture, and both a name.
 *
 * @param app the repository's URL
 * @returns the digests of app:v1 and of the index of both
 */
async function addPlatform(app: string): Promise<{ digest: string; multi: string }> {
  const call = async (url: string, options: RequestInit = {}): Promise<Response> => {
    const response = await fetch(url, options)
    if (!response.ok) throw new Error(`${url}: ${response.status} ${await response.text()}`)
    return response
  }
  const sha256 = (body: string): string => `sha256:${createHash('sha256').update(body).digest('hex')}`
  const put = async (name: string, type: string, value: object): Promise<string> => {
    const body = JSON.stringify(value)
    await call(`${app}/manifests/${name || sha256(body)}`, { method: 'PUT', body, headers: { 'content-type': type } })
    return body
  }
  const type = 'application/vnd.docker.distribution.manifest.v2+json'
  const own = await (await call(`${app}/manifests/v1`, { headers: { accept: type } })).text()
  const manifest = JSON.parse(own) as { config: { digest: string; size: number } }
  const config = await (await call(`${app}/blobs/${manifest.config.digest}`)).json()
  const other = JSON.stringify({ ...(config as object), architecture: 'riscv64' })
  const upload = (await call(`${app}/blobs/uploads/`, { method: 'POST' })).headers.get('location') ?? ''
  const url = new URL(upload, app)
  url.searchParams.set('digest', sha256(other))
  await call(url.href, { method: 'PUT', body: other, headers: { 'content-type': 'application/octet-stream' } })
  const twin = await put('', type, {
    ...manifest,
    config: { ...manifest.config, digest: sha256(other), size: other.length },
  })
  const entry = (body: string, architecture: string): object => ({
    ...{ mediaType: type, size: body.length, digest: sha256(body) },
    platform: { os: 'linux', architecture },
  })
  const list = 'application/vnd.docker.distribution.manifest.list.v2+json'
  const architecture = (config as { architecture: string }).architecture
  const manifests = [entry(twin, 'riscv64'), entry(own, architecture)]
  const index = await put('multi', list, { schemaVersion: 2, mediaType: list, manifests })
  return { digest: sha256(own), multi: sha256(index) }
}

describe.each(Object.keys(ENGINES) as Store[])('an engine with the %s store', store => {
  let place: Place
  let job: GitHubJob
  let inputs: Readonly<Record<string, string>>
  let before: readonly string[]
  /** What references begin with. */
  let open: string
  let guarded: string

  beforeAll(async () => {
    place = places[store]
    open = `127.0.0.1:${place.open.port}`
    guarded = `127.0.0.1:${place.guarded.port}`
    job = await startGitHubJob({ ...step, variables: engineVariables(store, false) }, { id: `e2e-${store}` })
    inputs = labInputs(ground)
    before = await listing(place.sidecar.docker)
    await place.sidecar.docker('pull', `${open}/app:v1`)
    await place.sidecar.docker('tag', `${open}/app:v1`, 'built-here')
    await place.sidecar.docker('rmi', `${open}/app:v1`)
  })

  describe('of what it lacks', () => {
    let use: Use
    let images: readonly string[]

    beforeAll(async () => {
      images = [
        'built-here',
        `${open}/good/app:v1`,
        `${open}/good/app@${digest}`,
        `${open}/busy/app:v1@${digest}`,
        `${open}/twice/app:v1`,
        `${open}/good/app:multi`,
        `${open}/good/app@${multi}`,
        `${guarded}/good/app:v1`,
      ]
      const more = ['docker.io/library/built-here:latest', `${open}/good/app:v1@${digest}`]
      use = await job.use(
        { ...inputs, images: [...images, ...more].join('\n') },
        { DOCKER_CONFIG: '/logged-in', RUNNER_DEBUG: '1' },
      )
    })

    it('pulls all, through a rate limit, a registry that is busy and one that wants a login', () => {
      expect(use.code, use.log).toBe(0)
      expect(place.open.tries('twice')).toBe(3)
      expect(place.open.tries('busy')).toBe(2)
      if (store === 'classic') expect(use.log).toMatch(new RegExp(`${open}/twice/app:v1: .*; trying again in 2\\.0s`))
    })

    it('warns that pods pull latest again', () => {
      expect(annotations(use, 'warning'), use.log).toEqual([
        expect.stringMatching(/^images: pods pull built-here again .* imagePullPolicy/),
      ])
    })

    it('prints no password, nor a token that the registry puts into a URL', () => {
      expect(use.log).not.toContain(PASSWORD)
      expect(use.log).not.toContain(Buffer.from(LOGIN).toString('base64'))
      expect(use.log).not.toContain('token')
    })

    it('runs pods that may not pull, by each way of naming an image', async () => {
      const run = [...images, `${open}/good/app:v1@${digest}`, 'docker.io/library/built-here:latest'].map(
        (image, index) => `kubectl run pod-${index} --image='${image}' --image-pull-policy=Never`,
      )
      const { code, log } = await job.run(
        `${run.join('\n')}\nkubectl wait pod --all --for=condition=Ready --timeout=60s`,
      )
      expect(code, log + (await job.run('kubectl describe pods')).log).toBe(0)
    })

    it('leaves nothing on the engine but images', async () => {
      const post = await job.post(use)
      expect(post.code, post.log).toBe(0)
      expect(await listing(place.sidecar.docker), post.log).toEqual(before)
    })
  })

  /** The only error of a use that cannot get these images; nothing is left of it after post. */
  async function refused(images: string, given: Readonly<Record<string, string>> = {}, env = {}): Promise<string> {
    const use = await job.use({ ...inputs, ...given, images }, env)
    expect(use.code, use.log).toBe(1)
    const [error = '', ...more] = annotations(use, 'error')
    expect(more, use.log).toEqual([])
    expect(use.log).not.toContain('token')
    const post = await job.post(use)
    expect(await listing(place.sidecar.docker), post.log).toEqual(before)
    return error
  }

  describe('refuses', () => {
    it('what is behind a rate limit to the end, with what raises it', async () => {
      expect(await refused(`${open}/limited/app:v1`)).toMatch(
        /in 3 tries: .*that is a rate limit: log in to 127\.0\.0\.1:\d+ \(docker login .*DOCKER_CONFIG\), or name a mirror \(registry-mirrors\)$/,
      )
      // The engine with containerd's store tries several times by itself, in each of ours.
      expect(place.open.tries('limited') / 3).toSatisfy(Number.isInteger)
    })

    it('what a registry denies, at once', async () => {
      expect(await refused(`${open}/denied/app:v1`)).toMatch(
        /^images: the engine cannot pull \S+\/denied\/app:v1: .*; log in/,
      )
      expect(place.open.tries('denied')).toBe(1)
    })

    it('what no registry has, with the reference and this engine', async () => {
      expect(await refused(`${open}/good/app:gone`)).toMatch(
        new RegExp(
          `^images: the engine cannot pull ${open}/good/app:gone: .*; build it on this engine \\(tcp://${store}:2375\\)`,
        ),
      )
    })

    it('what wants a login that the job lacks, and names a credential helper that is missing', async () => {
      const image = `${guarded}/good/app:v2`
      expect(await refused(image)).toMatch(/; log in to 127\.0\.0\.1:\d+ \(docker login/)
      expect(await refused(image, {}, { DOCKER_CONFIG: '/helped' })).toMatch(
        /; put the credential helper docker-credential-of-the-moon, which \/helped\/config\.json names for 127\.0\.0\.1:\d+, on PATH/,
      )
    })

    it('what is for another platform, with both', async () => {
      const foreign = `tar --create --files-from=/dev/null | docker import --platform linux/riscv64 - foreign:ci`
      await prepare(step, `DOCKER_HOST=tcp://${store}:2375; export DOCKER_HOST; ${foreign}`)
      expect(await refused('foreign:ci')).toMatch(
        /^images: foreign:ci is for linux\/riscv64, and the nodes .* linux\/\w+;/,
      )
    })

    it('what it may not pull, with the engine in reach that has it', async () => {
      const other = store === 'classic' ? 'containerd' : 'classic'
      const image = `built-on-${other}:ci`
      await places[other].sidecar.docker('import', '/dev/null', image)
      const given = { 'docker-host': `tcp://${store}:2375`, pull: 'never' }
      expect(await refused(image, given, { DOCKER_HOST: `tcp://${other}:2375` })).toMatch(
        new RegExp(
          `^images: the engine has no ${image} \\(another engine has it: tcp://${other}:2375 \\(DOCKER_HOST\\)`,
        ),
      )
    })
  })
})
