/**
 * Every place where CI runs an engine, each with the life of a job in it, and no option set for the place: the step finds
 * the engine, waits for it, and reaches its cluster. sidecar.e2e.ts has place 2, where DOCKER_HOST names the sidecar;
 * act.e2e.ts has place 1 on the very machine of the engine.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseDuration } from '../../src/lib/duration.ts'
import { kindPath } from '../release-page.ts'
import { annotations, type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { docker, listing, names } from './lab.ts'
import { itHasACluster, type Life, labInputs, live, refused } from './life.ts'
import { createGround, type Ended, engineVariables, type Ground, prepare, type Sidecar, type Step } from './place.ts'

const { node, web, dind, dindNewest, step } = names.images

/** Older than the node image; the release page has the lab's own kind under this name. */
const OLD_KIND = 'v0.29.0'
const OLD_KIND_WARNING = /^Kubernetes 1\.\d+ is newer than kind v0\.29\.0, which goes with 1\.33 at most; /

/** How RUNNER_DEBUG=1 shows the addresses that were tried, in order. */
function tried(use: Use): string[] {
  return annotations(use, 'debug').filter(line => line.startsWith('https://'))
}

/** Where something listens for tcp in the step's network namespace: addresses with ports. */
async function listeners(where: Step): Promise<readonly string[]> {
  const text = await prepare(where, 'ss --listening --tcp --numeric --no-header')
  return text.split('\n').map(line => line.split(/\s+/)[3] ?? '')
}

// Two places at a time: one cluster of one node does not keep two cores busy.
describe.concurrent('engines across a network', () => {
  describe.sequential("place 3: a sidecar named docker over TLS, while another engine's socket is mounted", () => {
    let ground: Ground
    let sidecar: Sidecar
    let other: Sidecar
    let job: GitHubJob
    let life: Life
    let socketsEngine: Ended
    let laterEngine: Ended
    let otherDid: readonly [before: string, after: string]

    beforeAll(async () => {
      ground = await createGround()
      const run = await ground.createVolume('run')
      sidecar = await ground.startSidecar('docker', { tls: true, images: [node, web] })
      const flags = ['--volume', `${run}:/var/run`]
      other = await ground.startSidecar('other', { aliases: [], tls: false, images: [], flags })
      const where = await ground.startStep('step', { variables: {}, certificates: sidecar, flags })
      job = await startGitHubJob(where, { id: 'place-3' })
      const id = `docker info --format '{{.ID}}'`
      socketsEngine = await job.run(id)
      const before = await whatItDid(other)
      life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground) }, async () => {
        laterEngine = await job.run(id)
      })
      otherDid = [before, await whatItDid(other)]
    })

    afterAll(() => ground?.remove())

    /** Everything that an engine made, changed or removed since it started. */
    async function whatItDid({ docker }: Sidecar): Promise<string> {
      const now = (await docker('info', '--format', '{{.SystemTime}}')).trim()
      return docker('events', '--since', '1', '--until', now)
    }

    itHasACluster(() => life, { host: /^docker$/ })

    it('says in the log which engine it took, and why', () => {
      expect(life.use.log).toMatch(/^Docker \S+ at tcp:\/\/docker:2376, found by the name docker$/m)
    })

    it('exports DOCKER_HOST and its TLS variables as a set, so that later steps talk to the same engine', async () => {
      expect(job.env).toMatchObject(engineVariables('docker', true))
      expect(laterEngine.stdout, laterEngine.log).toBe(await sidecar.docker('info', '--format', '{{.ID}}'))
    })

    it('does nothing on the other engine, to which the same step talked before', async () => {
      expect(socketsEngine.stdout, socketsEngine.log).toBe(await other.docker('info', '--format', '{{.ID}}'))
      expect(otherDid[1]).toBe(otherDid[0])
    })
  })

  describe.sequential('a plain engine', () => {
    let ground: Ground
    let sidecar: Sidecar

    beforeAll(async () => {
      ground = await createGround({ files: { [kindPath(OLD_KIND)]: { file: names.tools.kind } } })
      sidecar = await ground.startSidecar('dind', { aliases: ['dind'], tls: false, images: [node, web] })
    })

    afterAll(() => ground?.remove())

    /** A step that knows the engine by a container which forwards tcp: all of it, or what more of iptables' words match. */
    async function behind(name: string, ...which: readonly string[]): Promise<Step> {
      const script = `
        to=$(ping -c 1 -q dind | sed -n 's/^PING[^(]*(\\([0-9.]*\\)).*/\\1/p')
        echo 1 >/proc/sys/net/ipv4/ip_forward
        iptables -t nat -A PREROUTING -i eth0 -p tcp ${which.join(' ')} -j DNAT --to-destination "$to"
        iptables -t nat -A POSTROUTING -o eth0 -p tcp -d "$to" -j MASQUERADE
        exec sleep infinity`
      const flags = ['--privileged', '--network-alias', name, '--entrypoint', 'sh']
      await ground.startContainer(name, ...flags, dind, '-ec', script)
      return await ground.startStep(`${name}-step`, { variables: engineVariables(name, false) })
    }

    describe.sequential('place 6: behind another name, with an address that the engine does not have', () => {
      let life: Life

      beforeAll(async () => {
        const job = await startGitHubJob(await behind('service'), { id: 'place-6' })
        const env = { RUNNER_DEBUG: '1' }
        life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground), env })
      })

      itHasACluster(() => life, { host: /^service$/ })

      it('publishes on all addresses of the engine, and says so', () => {
        expect(life.use.log).toMatch(/^The engine does not have the address [\d.]+ itself: it publishes on all/m)
      })

      it('shows in the debug log how it got there', () => {
        expect(tried(life.use).at(-1), life.use.log).toMatch(/^https:\/\/service:\d+ answers$/)
      })
    })

    describe.sequential("place 6: behind another name, which forwards the engine's own port alone", () => {
      let error: string
      let use: Use

      beforeAll(async () => {
        const job = await startGitHubJob(await behind('narrow', '--dport', '2375'), { id: 'place-6-narrow' })
        const inputs = { ...labInputs(ground), 'kind-version': OLD_KIND }
        const env = { RUNNER_DEBUG: '1' }
        ;({ error, use } = await refused({ job, engine: sidecar.docker, inputs, env, made: true }))
      })

      it('fails with the table of attempts and with what to do; post leaves nothing', () => {
        const [sentence, ...lines] = error.split('\n')
        expect(sentence).toMatch(
          /^the cluster is up, but .* let the step reach the ports .* or name an address .* host$/,
        )
        expect(lines.slice(0, 2), error).toEqual([
          expect.stringMatching(/^ {2}narrow:\d+ +ECONNREFUSED$/),
          expect.stringMatching(/^ {2}[\d.]+:\d+ +ECONNREFUSED$/),
        ])
      })

      it('names again what it warned of before the creation', () => {
        const warnings = annotations(use, 'warning')
        expect(warnings, use.log).toEqual([expect.stringMatching(OLD_KIND_WARNING)])
        expect(error).toContain(`:\n  ${warnings[0]}`)
      })

      it('shows in the debug log what each attempt met, in order', () => {
        expect(tried(use).slice(0, 2), use.log).toEqual([
          expect.stringMatching(/^https:\/\/narrow:\d+ ECONNREFUSED$/),
          expect.stringMatching(/^https:\/\/[\d.]+:\d+ ECONNREFUSED$/),
        ])
      })

      it('gives up within a minute of the creation', () => {
        const created = annotations(use, 'debug').filter(line => /^\$ \S*\/kind create cluster .* -> 0 /.test(line))
        expect(created, use.log).toHaveLength(1)
        const creation = parseDuration(/\((\S+)\)$/.exec(created[0] ?? '')?.[1] ?? '') ?? Number.NaN
        expect(use.took - creation).toBeLessThan(60_000)
      })
    })

    describe.sequential('place 7: uid 1001, nothing to write but volumes and /tmp, neither curl nor sudo', () => {
      let life: Life
      let poor: Ended

      beforeAll(async () => {
        const where = await ground.startStep('poor', {
          variables: { ...engineVariables('dind', false), PATH: '/__w/bin', HOME: '/home/runner' },
          flags: ['--read-only', '--tmpfs', '/tmp', '--volume', '/__w', '--volume', '/__t'],
        })
        await prepare(where, 'mkdir /__w/bin && ln -s $(type -P bash docker node) /__w/bin/')
        const job = await startGitHubJob(where, { id: 'place-7', user: '1001' })
        poor = await job.run('echo "$UID $PATH"; ! type curl; ! type sudo; ! : >"$HOME/file"')
        life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground) })
      })

      it('is as poor as that', () => {
        expect(poor.stdout, poor.log).toBe('1001 /__w/bin\n')
        expect(poor.code, poor.log).toBe(0)
        expect(poor.log).toMatch(/Read-only file system/)
      })

      itHasACluster(() => life, { host: /^dind$/ })
    })
  })
})

describe.concurrent('engines beside the step', () => {
  describe.sequential('one engine, with its socket on a volume', () => {
    let ground: Ground
    let sidecar: Sidecar
    /** The flag by which a step gets the socket. */
    let socket: readonly string[]

    beforeAll(async () => {
      ground = await createGround()
      socket = ['--volume', `${await ground.createVolume('run')}:/var/run`]
      const images = [node, web, step]
      sidecar = await ground.startSidecar('pod', { aliases: [], tls: false, images, flags: socket })
    })

    afterAll(() => ground?.remove())

    /** Lives through a job in the step, with what listens there before and while the cluster is up. */
    async function liveAndListen(id: string, where: Step): Promise<Life & { readonly opened: readonly string[] }> {
      const job = await startGitHubJob(where, { id })
      const before = await listeners(where)
      let opened: readonly string[] = []
      const life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground) }, async () => {
        opened = (await listeners(where)).filter(listener => !before.includes(listener))
      })
      return { ...life, opened }
    }

    /** The API server's port and the NodePort, where nobody but this network namespace gets. */
    function itListensOnLoopbackAlone(life: () => { readonly opened: readonly string[] }): void {
      it('makes nothing listen beyond loopback', () => {
        const { opened } = life()
        expect(opened).toHaveLength(2)
        for (const listener of opened) expect(listener).toMatch(/^127\.0\.0\.1:\d+$/)
      })
    }

    describe.sequential("place 4: in the engine's own network, by tcp://localhost:2375, in a pod of another cluster", () => {
      let life: Awaited<ReturnType<typeof liveAndListen>>

      beforeAll(async () => {
        const where = await ground.startStep('localhost', {
          network: `container:${sidecar.name}`,
          variables: {
            ...engineVariables('localhost', false),
            KUBERNETES_SERVICE_HOST: '10.96.0.1',
            KUBERNETES_SERVICE_PORT: '443',
          },
        })
        // With these kubectl takes the namespace for its own, if the kubeconfig names none.
        const account = '/var/run/secrets/kubernetes.io/serviceaccount'
        await prepare(
          where,
          `mkdir -p ${account} && cd ${account} && echo ci >namespace && echo token >token && : >ca.crt`,
        )
        life = await liveAndListen('place-4', where)
      })

      itHasACluster(() => life, { host: /^localhost$/ })
      itListensOnLoopbackAlone(() => life)
    })

    describe.sequential("places 1 and 4: in the engine's own network, by its socket and no variable", () => {
      let life: Awaited<ReturnType<typeof liveAndListen>>

      beforeAll(async () => {
        const network = `container:${sidecar.name}`
        const where = await ground.startStep('socket', { network, variables: {}, flags: socket })
        life = await liveAndListen('place-1', where)
      })

      itHasACluster(() => life, { host: /^127\.0\.0\.1$/ })
      itListensOnLoopbackAlone(() => life)

      it('says in the log which engine it took, and why', () => {
        expect(life.use.log).toMatch(/^Docker \S+ at unix:\/\/\/var\/run\/docker\.sock, found by the default socket$/m)
      })
    })

    describe.sequential('place 5: a sibling, whose container the same engine runs on another network', () => {
      let life: Life
      let networks: Readonly<Record<'before' | 'during' | 'after', string>>

      beforeAll(async () => {
        const where = await ground.startStep('sibling', {
          ...{ engine: sidecar, network: 'bridge', variables: {} },
          flags: ['--volume', '/var/run/docker.sock:/var/run/docker.sock'],
        })
        const job = await startGitHubJob(where, { id: 'place-5' })
        const self = await prepare(where, 'hostname')
        const seen = (): Promise<string> =>
          sidecar.docker(
            'container',
            'inspect',
            '--format',
            '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}',
            self,
          )
        const before = await seen()
        let during = ''
        const env = { RUNNER_DEBUG: '1' }
        life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground), env }, async () => {
          during = await seen()
        })
        networks = { before: before.trim(), during: during.trim(), after: (await seen()).trim() }
      })

      itHasACluster(() => life, { host: /-control-plane$/ })

      it("joins the cluster's network, says so, and has left it after post", () => {
        const { network } = life.use.outputs
        expect(networks).toEqual({ before: 'bridge', during: `bridge ${network}`, after: 'bridge' })
        expect(life.use.log).toMatch(
          new RegExp(`^This step's container [0-9a-f]{12} joined the network ${network} `, 'm'),
        )
      })

      it("shows in the debug log that it tried the engine's port first, then the node", () => {
        expect(tried(life.use), life.use.log).toEqual([
          expect.stringMatching(/^https:\/\/127\.0\.0\.1:\d+ ECONNREFUSED$/),
          `https://${life.use.outputs['name']}-control-plane:6443 answers`,
        ])
      })

      it('looks at the engine before creation for less than three seconds', () => {
        const looks = annotations(life.use, 'debug').filter(line =>
          /^\$ docker (run --rm|container inspect .*"mode")/.test(line),
        )
        const seconds = looks.map(line => Number(/\((\d+\.\d)s\)$/.exec(line)?.[1]))
        expect(seconds.length, life.use.log).toBeGreaterThanOrEqual(2)
        expect(
          seconds.reduce((sum, each) => sum + each),
          looks.join('\n'),
        ).toBeLessThan(3)
      })

      it('has the NodePort at the node', () => {
        expect(life.use.outputs['ports']).toBe(`{"30080":"${life.use.outputs['name']}-control-plane:30080"}`)
      })
    })
  })

  describe.sequential('place 8: the newest engine with the containerd image store, which comes late with its certificates', () => {
    let ground: Ground
    let store: string
    let life: Life

    beforeAll(async () => {
      ground = await createGround()
      const sidecar = await ground.startSidecar('docker', {
        ...{ image: dindNewest, tls: true, images: [node, web] },
        arguments: ['--feature', 'containerd-snapshotter=true'],
      })
      store = await sidecar.docker('info', '--format', '{{.DriverStatus}}')
      const before = await listing(sidecar.docker)
      // As before its first start, but that it has the images.
      await docker('exec', sidecar.name, 'sh', '-c', 'rm -r /certs/client/*')
      await docker('stop', sidecar.name)
      const where = await ground.startStep('step', {
        variables: engineVariables('docker', true),
        certificates: sidecar,
      })
      let started: Promise<unknown> | undefined
      const job = await startGitHubJob(where, {
        id: 'place-8',
        onLine: line => {
          if (line.startsWith('Waiting for the engine: ')) started ??= docker('start', sidecar.name)
        },
      })
      life = await live({ job, engine: sidecar.docker, inputs: labInputs(ground), before })
      await started
    })

    afterAll(() => ground?.remove())

    it('has that image store', () => {
      expect(store).toContain('io.containerd.snapshotter')
    })

    itHasACluster(() => life, { host: /^docker$/ })

    it('says what it waits for, once', () => {
      const waiting = life.use.log.split('\n').filter(line => line.startsWith('Waiting for the engine'))
      expect(waiting).toEqual([
        expect.stringMatching(
          /: tcp:\/\/docker:2376 is asked .* but \/certs\/client lacks ca\.pem, cert\.pem, key\.pem$/,
        ),
      ])
    })
  })

  describe.sequential('place 8: the newest engine with overlay2, an older kind, and a host that the user names', () => {
    let ground: Ground
    let driver: string
    let life: Life

    beforeAll(async () => {
      ground = await createGround({ files: { [kindPath(OLD_KIND)]: { file: names.tools.kind } } })
      const sidecar = await ground.startSidecar('docker', {
        ...{ image: dindNewest, tls: false, images: [node, web], aliases: ['docker', 'cluster.test'] },
        arguments: ['--feature', 'containerd-snapshotter=false'],
      })
      driver = await sidecar.docker('info', '--format', '{{.Driver}}')
      const where = await ground.startStep('step', { variables: engineVariables('docker', false) })
      const job = await startGitHubJob(where, { id: 'place-8' })
      const inputs = { ...labInputs(ground), 'kind-version': OLD_KIND, host: 'cluster.test' }
      life = await live({ job, engine: sidecar.docker, inputs })
    })

    afterAll(() => ground?.remove())

    it('has that storage driver', () => {
      expect(driver.trim()).toBe('overlay2')
    })

    itHasACluster(() => life, {
      host: /^cluster\.test$/,
      warnings: [OLD_KIND_WARNING],
    })
  })
})
