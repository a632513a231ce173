/**
 * The case that this program is for: a step in a container, its engine in a sidecar that answers to the name `docker`. The
 * step gets a cluster, works with it as people do, and loses it again.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { formatMemory, parseQuantity } from '../../src/lib/quantity.ts'
import { OUTPUTS } from '../../src/outputs.ts'
import { kindPath, kubectlPath } from '../release-page.ts'
import { type GitHubJob, startGitHubJob, type Use } from './github-job.ts'
import { listing, names } from './lab.ts'
import { createPlace, type Ended, type Place } from './place.ts'
import { NODE_PORT, webManifest } from './web.ts'

const { node, web } = names.images

describe.each([
  ['plain on 2375', 'runner', false],
  ['TLS on 2376', 'root', true],
])('an engine %s, a step of the user %s', (_engine, user, tls) => {
  let place: Place
  let before: readonly string[]
  let job: GitHubJob
  let use: Use

  beforeAll(async () => {
    place = await createPlace({ tls, images: [node, web] })
    before = await listing(place.docker)
    job = await startGitHubJob(place, { id: 'e2e', user })
    use = await job.use({
      workers: '1',
      ports: `${NODE_PORT}`,
      images: web,
      'node-image': node,
      'download-url': `kind=${place.page.templates.kind}\nkubectl=${place.page.templates.kubectl}`,
    })
    expect(use.code, use.log).toBe(0)
  })

  afterAll(() => place?.remove())

  /** What a later step prints; it must succeed. */
  async function prints(script: string): Promise<string> {
    const { code, stdout, log } = await job.run(script)
    expect(code, log).toBe(0)
    return stdout.trim()
  }

  it('has both nodes and CoreDNS ready when the step begins', async () => {
    expect(
      await prints(
        `kubectl get nodes --output jsonpath='{.items[*].status.conditions[?(@.type=="Ready")].status}'
        kubectl wait deployment/coredns --namespace kube-system --for condition=Available --timeout 0 >&2`,
      ),
    ).toBe('True True')
  })

  it('runs under the Node that action.yml asks for, without a warning', async () => {
    expect(await prints('node --version')).toMatch(/^v24\./)
    expect(use.log).not.toMatch(/warning/i)
  })

  it('gets kind and kubectl from the release page into the tool cache, and puts them on PATH', async () => {
    expect(place.page.count(kindPath(names.kindVersion)), use.log).toBe(1)
    expect(place.page.count(kubectlPath(names.kubernetesVersion)), use.log).toBe(1)
    const paths = (await prints('command -v kind kubectl')).split('\n')
    expect(paths).toEqual([expect.stringMatching(/^\/__t\/.*\/kind$/), expect.stringMatching(/^\/__t\/.*\/kubectl$/)])
  })

  it('reaches the API server at the name docker, with its certificate verified', async () => {
    expect(await prints('kubectl get --raw /readyz')).toBe('ok')
    expect(await prints("kubectl config view --output jsonpath='{.clusters[*].cluster.server}'")).toBe(
      use.outputs['server'],
    )
    expect(use.outputs['server']).toMatch(/^https:\/\/docker:\d+$/)
    // Shown only where it is true.
    expect(await prints('kubectl config view')).not.toContain('insecure-skip-tls-verify')
  })

  it('gets a kubeconfig that is for its own user alone', async () => {
    expect(await prints('stat --format "%a %U" "$KUBECONFIG" "$KIND_IN_DIND_KUBECONFIG_INTERNAL"')).toBe(
      `600 ${user}\n600 ${user}`,
    )
  })

  it('gets every output that action.yml has, with what is true of the cluster', async () => {
    expect(Object.keys(use.outputs).sort()).toEqual(OUTPUTS.map(({ name }) => name).sort())
    expect(use.outputs).toMatchObject({
      host: 'docker',
      'node-image': node,
      'kubernetes-version': names.kubernetesVersion,
      kubeconfig: await prints('printenv KUBECONFIG'),
    })
    const made = await listing(place.docker)
    expect(made).toContain(`container ${use.outputs['name']}-control-plane`)
    expect(made).toContain(`container ${use.outputs['name']}-worker`)
    expect(made).toContain(`network ${use.outputs['network']}`)
  })

  it('is shown on the page of the job: where it is, what pods can get, and what took how long', async () => {
    const { name, server } = use.outputs
    expect(use.summary).toContain(`### ✅ Kubernetes ${names.kubernetesVersion} is ready after`)
    expect(use.summary).toContain(`| API server | \`${server}\` |`)
    const allocatable = await prints(
      `kubectl get node ${name}-worker --output jsonpath='{.status.allocatable.cpu} {.status.allocatable.memory}'`,
    )
    const [cpus, memory] = allocatable.split(' ') as [string, string]
    expect(use.summary).toContain(
      `| \`${name}-worker\` | ${parseQuantity(cpus)} | ${formatMemory(parseQuantity(memory) ?? 0)} |`,
    )
    expect(use.summary).toContain(`| \`${web}\` |`)
    for (const stage of ['Starting control-plane', '2 nodes ready']) {
      expect(use.summary).toMatch(new RegExp(`section ${stage}\n +\\d+\\.\\ds :\\d+, \\d+\n`))
    }
  })

  it('gets every output also as a variable', async () => {
    for (const { name } of OUTPUTS) {
      expect(job.env[`KIND_IN_DIND_${name.toUpperCase().replaceAll('-', '_')}`]).toBe(use.outputs[name])
    }
    expect(JSON.parse(use.outputs['ports'] ?? '')).toEqual({ [NODE_PORT]: job.env[`KIND_IN_DIND_PORT_${NODE_PORT}`] })
  })

  it('keeps its own way to the engine', () => {
    expect(job.env).toMatchObject(place.variables)
  })

  it('has no bootstrap token left, with which anyone could join a node', async () => {
    expect(
      await prints(
        'kubectl get secrets --namespace kube-system --field-selector type=bootstrap.kubernetes.io/token --output name',
      ),
    ).toBe('')
  })

  it('is reached by containers on its network with the internal kubeconfig', async () => {
    expect(
      await prints(
        `docker exec --interactive "$KIND_IN_DIND_NAME-worker" \\
          kubectl --kubeconfig /dev/stdin get --raw /readyz <"$KIND_IN_DIND_KUBECONFIG_INTERNAL"`,
      ),
    ).toBe('ok')
  })

  it('runs the preloaded image on both nodes, which never pull it', async () => {
    const { code, log } = await job.run(
      'kubectl apply --filename - && kubectl rollout status deployment/web --timeout 2m',
      { input: webManifest(web) },
    )
    expect(code, log).toBe(0)
    const nodes = await prints("kubectl get pods --selector app=web --output jsonpath='{.items[*].spec.nodeName}'")
    expect(nodes.split(' ').sort()).toEqual([`${use.outputs['name']}-control-plane`, `${use.outputs['name']}-worker`])
  })

  it('gets another image later, into all nodes by the command and into one by the sub-action', async () => {
    await prints(`docker tag ${web} later:command && docker tag ${web} later:action && kind-in-dind load later:command`)
    const { code, log } = await job.useSub('load', { images: 'later:action', nodes: 'worker' })
    expect(code, log).toBe(0)
    const run = (image: string, node: string): string => {
      const spec = JSON.stringify({ spec: { nodeName: node } })
      const name = `${image.replace(':', '-')}-${node.split('-').at(-1)}`
      return `kubectl run ${name} --image=${image} --image-pull-policy=Never --overrides='${spec}'`
    }
    const [controlPlane, worker] = ['control-plane', 'worker'].map(role => `${use.outputs['name']}-${role}`) as [
      string,
      string,
    ]
    const pods = [run('later:command', controlPlane), run('later:command', worker), run('later:action', worker)]
    await prints(`${pods.join('\n')}\nkubectl wait pod --all --for condition=Ready --timeout 2m`)
    expect(await prints(`docker exec ${controlPlane} crictl images`)).not.toMatch(/later\s+action/)
  })

  it('says which nodes there are when load is told another', async () => {
    const { code, log } = await job.run('kind-in-dind load later:command --nodes worker7')
    expect([code, log]).toEqual([1, expect.stringContaining('nodes: there is no node "worker7"; there are ')])
  })

  it('serves it by NodePort at the name docker', async () => {
    expect(job.env[`KIND_IN_DIND_PORT_${NODE_PORT}`]).toMatch(/^docker:\d+$/)
    expect(
      await prints(
        `curl --silent --show-error --retry 9 --retry-all-errors --output /dev/null --write-out '%{http_code}' \\
          "http://$KIND_IN_DIND_PORT_${NODE_PORT}"`,
      ),
    ).toBe('200')
  })

  it('serves it by kubectl port-forward', async () => {
    expect(
      await prints(
        `coproc kubectl port-forward service/web :80
        read -r line <&"\${COPROC[0]}"
        [[ $line =~ 127.0.0.1:([0-9]+) ]]
        curl --silent --show-error --output /dev/null --write-out '%{http_code}' "http://127.0.0.1:\${BASH_REMATCH[1]}"
        kill "$COPROC_PID"`,
      ),
    ).toBe('200')
  })

  const byHand = async (): Promise<void> => {
    const { kind, kubectl } = place.page.templates
    await prints(`kind-in-dind up --name by-hand --node-image ${node} --download-url kind=${kind},kubectl=${kubectl}`)
    expect(await listing(place.docker)).toContain('container by-hand-control-plane')
  }
  // That it goes with the others is seen below.
  if (user === 'root') it('may start another cluster by hand', byHand)

  describe('after the job', () => {
    let post: Ended

    beforeAll(async () => {
      post = await job.post(use)
    })

    it('leaves the engine with exactly the containers, networks and volumes that it had', async () => {
      expect(post.code, post.log).toBe(0)
      expect(await listing(place.docker), post.log).toEqual(before)
    })

    it('says to a later load that there is no cluster', async () => {
      const { code, log } = await job.useSub('load', { images: 'later:command' })
      expect([code, log]).toEqual([1, expect.stringContaining('there is no cluster here')])
    })

    it('leaves none of its files', async () => {
      expect(await prints('find "$RUNNER_TEMP" -path "*/kind-in-dind*"')).toBe('')
    })

    it('may run again', async () => {
      const again = await job.post(use)
      expect(again.code, again.log).toBe(0)
      expect(again.log).not.toMatch(/::(error|warning)/)
      expect(await listing(place.docker), again.log).toEqual(before)
    })
  })
})
