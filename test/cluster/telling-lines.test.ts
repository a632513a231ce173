import { describe, expect, test } from 'vitest'
import { kindFailure, kubeletFailures, whatIsWrong } from '../../src/cluster/telling-lines.ts'

const filesOf = (texts: Readonly<Record<string, string>>): ReadonlyMap<string, Buffer> =>
  new Map(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)]))

describe('what kind said', () => {
  // As kind 0.33 and kubeadm 1.34 say it, shortened.
  const KUBEADM = `Creating cluster "c" ...
 • Starting control-plane 🕹️  ...
 ✗ Starting control-plane 🕹️
ERROR: failed to create cluster: failed to init node with kubeadm: command "docker exec --privileged c-control-plane kubeadm init --config=/kind/kubeadm.conf --skip-token-print --v=6" failed with error: exit status 1

Command Output: I1130 16:13:18.783854     104 initconfiguration.go:260] loading configuration from "/kind/kubeadm.conf"
W1130 16:13:18.784694     104 common.go:100] your configuration file uses a deprecated API spec: "kubeadm.k8s.io/v1beta3"
W1130 16:13:19.727913     104 initconfiguration.go:361] [config] WARNING: Ignored configuration document with GroupVersionKind kubeadm.k8s.io/v1beta3, Kind=JoinConfiguration
[kubelet-start] Starting the kubelet
I1130 16:13:25.568473     104 loader.go:402] Config loaded from file:  /etc/kubernetes/admin.conf
[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s
[kubelet-check] The kubelet is not healthy after 4m0.000402256s

Unfortunately, an error has occurred, likely caused by:
	- The kubelet is not running

If you are on a systemd-powered system, you can try to troubleshoot the error with the following commands:
	- 'systemctl status kubelet'

error: error execution phase wait-control-plane: failed while waiting for the kubelet to start

k8s.io/kubernetes/cmd/kubeadm/app/cmd/phases/workflow.(*Runner).Run.func1
	k8s.io/kubernetes@v1.34.4/cmd/kubeadm/app/cmd/phases/workflow/runner.go:262
main.main
	k8s.io/kubernetes/cmd/kubeadm/kubeadm.go:25
runtime.goexit
	runtime/asm_amd64.s:1771
`

  test("is its error and kubeadm's last words, without the stack and the progress", () => {
    expect(kindFailure(KUBEADM)).toBe(
      `failed to create cluster: failed to init node with kubeadm: command "docker exec --privileged …" failed with error: exit status 1
[kubelet-start] Starting the kubelet
[kubelet-check] Waiting for a healthy kubelet at http://127.0.0.1:10248/healthz. This can take up to 4m0s
[kubelet-check] The kubelet is not healthy after 4m0.000402256s
error: error execution phase wait-control-plane: failed while waiting for the kubelet to start`,
    )
  })

  test("is the engine's sentence where a node does not start", () => {
    const said = `ERROR: failed to create cluster: command "docker run --name c-control-plane --hostname c" failed with error: exit status 125

Command Output: 0af3
docker: Error response from daemon: no space left on device.
`
    expect(kindFailure(said)).toBe(
      `failed to create cluster: command "docker run --name …" failed with error: exit status 125
0af3
docker: Error response from daemon: no space left on device.`,
    )
  })

  test('is all that is no progress where it had no time for an error', () => {
    expect(kindFailure(' • Preparing nodes 📦  ...\nsomething odd\n')).toBe('something odd')
  })
})

describe('kubelets that end again and again', () => {
  const ended = 'Nov 30 16:15:29 n systemd[1]: kubelet.service: Failed with result'
  const says = (what: string): string =>
    `Nov 30 16:15:29.7 n kubelet[797]: E1130 16:15:29.756374     797 run.go:72] ${what}`

  test('say why, each reason once, by node', () => {
    const files = filesOf({
      'a/kubelet.log': [
        says('"command failed" err="unknown flag"'),
        ended,
        says('"command failed" err="unknown flag"'),
      ].join('\n'),
      'b/kubelet.log': says('something that went by'),
    })
    expect(kubeletFailures(files, ['a', 'b', 'c'])).toEqual([
      'the kubelet on a ends again and again: "command failed" err="unknown flag"',
    ])
  })
})

test('what is wrong: nodes and pods that are not ready, then the last warnings, no more than people read', () => {
  const event = (n: number, type: string): string => `default   ${n}s    ${type}   Failed   pod/bad   message ${n}`
  const files = filesOf({
    'not-ready.txt': `node n: KubeletNotReady: no CNI\nThe connection was refused\npod default/bad: Pending`,
    'events.txt': [
      'NAMESPACE   LAST SEEN   TYPE',
      event(1, 'Normal'),
      ...[2, 3, 4, 5, 6, 7].map(n => event(n, 'Warning')),
    ].join('\n'),
  })
  expect(whatIsWrong(files)).toEqual([
    'node n: KubeletNotReady: no CNI',
    'pod default/bad: Pending',
    ...[3, 4, 5, 6, 7].map(n => `default  ${n}s  Warning  Failed  pod/bad  message ${n}`),
  ])
  expect(whatIsWrong(new Map())).toEqual([])
})

test('what is wrong is not what is over, that the engine has cgroup v1, or what the scheduler thought of preemption', () => {
  const unscheduled = (pod: string): string =>
    `default   9s   Warning   FailedScheduling   pod/${pod}   0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.`
  const files = filesOf({
    'not-ready.txt': 'pod default/big: Pending',
    'events.txt': [
      'default   9s   Warning   CgroupV1   node/n   cgroup v1 support is in maintenance mode',
      unscheduled('started-since'),
      unscheduled('big'),
    ].join('\n'),
  })
  expect(whatIsWrong(files)).toEqual([
    'pod default/big: Pending',
    'default  9s  Warning  FailedScheduling  pod/big  0/1 nodes are available: 1 Insufficient cpu.',
  ])
})
