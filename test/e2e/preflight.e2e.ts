/** What pre sees before it creates a cluster, on real engines: one sentence that says what to change, and nothing is left. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { annotations, startGitHubJob, type Use } from './github-job.ts'
import { names } from './lab.ts'
import { labInputs, refused } from './life.ts'
import {
  createGround,
  engineVariables,
  type Ground,
  prepare,
  type Sidecar,
  type SidecarOptions,
  type Step,
} from './place.ts'
import { NODE_PORT } from './web.ts'

const { node, web } = names.images

let count = 0

interface Engine {
  readonly ground: Ground
  readonly sidecar: Sidecar
  readonly step: Step
}

/** An engine at the name docker, and a step without a variable that says so. */
async function startEngine(given: SidecarOptions): Promise<Engine> {
  const ground = await createGround()
  const sidecar = await ground.startSidecar('docker', given)
  return { ground, sidecar, step: await ground.startStep('step', { variables: {}, certificates: sidecar }) }
}

/** A use in a job of its own that is refused; `made` where that may be after something was made, for post to remove. */
async function refuse(
  { ground, sidecar, step }: Engine,
  env: Readonly<Record<string, string>>,
  inputs: Readonly<Record<string, string>> = {},
  made = false,
): Promise<{ readonly error: string; readonly use: Use }> {
  const job = await startGitHubJob(step, { id: `preflight-${++count}` })
  return await refused({ job, engine: sidecar.docker, inputs: { ...labInputs(ground), ...inputs }, env, made })
}

/** Folders of certificates in the step: a set of its own, one without the key, one of a foreign client. */
const CERTIFICATES = `
  mkdir -p /own/foreign /own/no-key /own/foreign-client
  cd /own/foreign
  openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=foreign -days 2 -keyout key.pem -out cert.pem
  cp cert.pem ca.pem
  cp ca.pem cert.pem ../no-key/
  cp ca.pem cert.pem key.pem ../foreign-client/`

/**
 * Gives the engine as DOCKER_HOST at that port, and with a folder of certificates also the other two variables: it must be
 * refused with one sentence.
 */
async function sentence(engine: Engine, port: number, certificates: string | undefined): Promise<string> {
  const address = `tcp://docker:${port}`
  const tls = certificates === undefined ? {} : { DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: certificates }
  const { error } = await refuse(engine, { DOCKER_HOST: address, ...tls }, { 'docker-wait': '1s' })
  expect(error).toMatch(new RegExp(`^no Docker engine answers.*: ${address} \\(found by DOCKER_HOST\\) .*$`))
  return error
}

// Both engines at a time: most of the time is spent on waiting for one that does not answer.
describe.concurrent('an engine with TLS', () => {
  describe.sequential('which has 2376 alone, and stores images with vfs', () => {
    let engine: Engine

    beforeAll(async () => {
      engine = await startEngine({ tls: true, images: [], arguments: ['--storage-driver=vfs'] })
      const own = 'cp /certs/client/ca.pem /own/foreign-client/ && cp /certs/client/{ca,cert}.pem /own/no-key/'
      await prepare(engine.step, `${CERTIFICATES}\n${own}`)
    })

    afterAll(() => engine?.ground.remove())

    it.each([
      ['2376 without TLS', 2376, undefined, /: set DOCKER_TLS_VERIFY=1 and DOCKER_CERT_PATH /],
      ['2376 without certificates', 2376, '/none', / lacks ca\.pem, cert\.pem, key\.pem: .* let DOCKER_CERT_PATH name/],
      ['2376 without the key', 2376, '/own/no-key', / lacks key\.pem: .* let DOCKER_CERT_PATH name/],
      [
        '2376 as a foreign client',
        2376,
        '/own/foreign-client',
        /our client certificate.*: .* let DOCKER_CERT_PATH name/,
      ],
      ['2376 with a foreign authority', 2376, '/own/foreign', / ca\.pem did not sign .*: .* let DOCKER_CERT_PATH name/],
      ['2375 without TLS', 2375, undefined, /: set DOCKER_HOST=tcp:\/\/docker:2376 with DOCKER_TLS_VERIFY=1 /],
      ['2375 with TLS', 2375, '/certs/client', /: set DOCKER_HOST=tcp:\/\/docker:2376$/],
      ['2375 without the key', 2375, '/own/no-key', /: set DOCKER_HOST=tcp:\/\/docker:2376$/],
      ['2375 as a foreign client', 2375, '/own/foreign', /: set DOCKER_HOST=tcp:\/\/docker:2376$/],
    ])('%s: says which variable to change', async (_row, port, certificates, what) => {
      expect(await sentence(engine, port, certificates)).toMatch(what)
    })

    it('2376 with TLS: answers, and is warned of for vfs', async () => {
      const { error, use } = await refuse(engine, engineVariables('docker', true), {
        images: 'nobody/built-this:ci',
        pull: 'never',
      })
      expect(annotations(use, 'warning')).toEqual([expect.stringMatching(/^the engine stores images with vfs, /)])
      // Nothing was created, so the warning is not its cause.
      expect(error).toMatch(/^images: the engine has no nobody\/built-this:ci, and pull is never; .*$/)
    })
  })
})

describe.concurrent('a plain engine', () => {
  describe.sequential('which has 2375 alone', () => {
    const variables = engineVariables('docker', false)
    let engine: Engine

    beforeAll(async () => {
      engine = await startEngine({ tls: false, images: [node, web] })
      await prepare(engine.step, CERTIFICATES)
    })

    afterAll(() => engine?.ground.remove())

    it.each([
      ['2375 with TLS', 2375, '/own/foreign', /: unset DOCKER_TLS_VERIFY/],
      ['2375 without the key', 2375, '/own/no-key', /: unset DOCKER_TLS_VERIFY/],
      ['2376 without TLS', 2376, undefined, /: set DOCKER_HOST=tcp:\/\/docker:2375$/],
      ['2376 with TLS', 2376, '/own/foreign', /: set DOCKER_HOST=tcp:\/\/docker:2375 and unset DOCKER_TLS_VERIFY$/],
      [
        '2376 without the key',
        2376,
        '/own/no-key',
        /: set DOCKER_HOST=tcp:\/\/docker:2375 and unset DOCKER_TLS_VERIFY$/,
      ],
    ])('%s: says which variable to change', async (_row, port, certificates, what) => {
      expect(await sentence(engine, port, certificates)).toMatch(what)
    })

    it('refuses a port that a container holds, and names it', async () => {
      const { docker } = engine.sidecar
      await docker('run', '--detach', '--name', 'holder', '--publish', '30999:80', web)
      try {
        const { error } = await refuse(engine, variables, { ports: `30999:${NODE_PORT}` }, true)
        expect(error).toMatch(/^ports: the engine's port 30999 is held by the container holder; .*$/)
      } finally {
        await docker('rm', '--force', '--volumes', 'holder')
      }
    })

    it("refuses a mount of a path that the step has and the engine's machine does not", async () => {
      await prepare(engine.step, 'mkdir -p /only/in/the/step')
      const mount = '{hostPath: /only/in/the/step, containerPath: /there}'
      const nodes = `nodes: [{role: control-plane, extraMounts: [${mount}]}]`
      const config = `kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\n${nodes}`
      const { error } = await refuse(engine, variables, { config }, true)
      expect(error).toMatch(/^config: extraMounts names \/only\/in\/the\/step, which is not on the engine's machine; /)
    })

    it('refuses API versions that are apart, with both of them and the variable', async () => {
      const highest = (await engine.sidecar.docker('version', '--format', '{{.Server.APIVersion}}')).trim()
      const { error } = await refuse(engine, { ...variables, DOCKER_API_VERSION: '1.99' })
      expect(error).toContain('speaks API version 1.99 and the engine none above')
      expect(error).toContain(`unset DOCKER_API_VERSION or set it to ${highest}`)
    })

    it("refuses a Kubernetes that does not start with the engine's cgroups, with the one that does", async () => {
      const cgroups = (await engine.sidecar.docker('info', '--format', '{{.CgroupVersion}}')).trim()
      // On an engine with v2 all is well but the image, which is looked for last.
      const inputs = { 'node-image': '', 'kubernetes-version': '1.35', images: 'nobody/built-this:ci', pull: 'never' }
      const { error } = await refuse(engine, variables, inputs)
      expect(error).toMatch(
        cgroups === '1'
          ? /^kubernetes-version: the engine has cgroup v1, .* v1\.35\.\d+ does not start; take kubernetes-version "1\.34", /
          : /^images: the engine has no nobody\/built-this:ci, and pull is never;/,
      )
    })
  })
})
