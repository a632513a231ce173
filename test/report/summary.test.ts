import { expect, test } from 'vitest'
import { newReport, type Report } from '../../src/report/report.ts'
import { code, fenced, plain, summaryMarkdown } from '../../src/report/summary.ts'
import { failedStage, mermaidGantt, type Stage, shownStages, textGantt } from '../../src/report/timeline.ts'

const GIB = 1024 ** 3

const stages: readonly Stage[] = [
  { name: 'Find the engine', start: 200, end: 700, failed: false },
  { name: 'Get kind', start: 200, end: 2200, failed: false },
  { name: 'Starting control-plane', start: 2200, end: 20_000, failed: false },
  { name: 'Load images', start: 12_000, end: 20_000, failed: false },
]

function aReport(overrides: Partial<Report> = {}): Report {
  return {
    ...newReport(),
    cluster: 'shop-1',
    ready: true,
    engine: { cpus: 4, memory: 8 * GIB },
    versions: [{ what: 'Kubernetes', value: 'v1.34.4' }],
    nodes: [
      { name: 'shop-1-control-plane', cpus: 2, memory: 3.5 * GIB },
      { name: 'shop-1-worker', cpus: 2, memory: 3.5 * GIB },
    ],
    addresses: [{ what: 'API server', value: 'https://docker:32800' }],
    images: [
      { reference: 'app:ci', how: 'streamed', bytes: 228e6, sent: 24e6, ms: 5200 },
      { reference: 'db:ci', how: 'was there' },
    ],
    ...overrides,
  }
}

test('a cluster that is ready: addresses, what pods can get on each node and on all, images, the stages as a picture', () => {
  expect(
    summaryMarkdown(aReport({ warnings: ['cpus: 2 are shared'] }), stages, true),
  ).toBe(`### ✅ Kubernetes v1.34.4 is ready after 20.0s: \`shop-1\`

- ⚠️ cpus: 2 are shared

| cluster | \`shop-1\` |
|:---|:---|
| API server | \`https://docker:32800\` |
| Kubernetes | \`v1.34.4\` |

| node | CPUs for pods | memory for pods |
|:---|:---|:---|
| \`shop-1-control-plane\` | 2 | 3.5 GiB |
| \`shop-1-worker\` | 2 | 3.5 GiB |
| *the engine, which the nodes share* | *4* | *8 GiB* |

| image | how it came | size | sent | took |
|:---|:---|:---|:---|:---|
| \`app:ci\` | streamed | 228 MB | 24 MB | 5.2s |
| \`db:ci\` | was there |  |  |  |

\`\`\`mermaid
${mermaidGantt(stages)}
\`\`\`
`)
})

test('a failure: what failed and when, the sentence that says why and what to do, where the logs are', () => {
  const broken = [...stages.slice(0, 2), { name: 'Get the node image', start: 900, end: 3100, failed: true }]
  const report = aReport({ ...newReport(), cluster: 'shop-1', failure: 'node-image: no\n```x', logsDir: '/logs/a|b' })
  expect(summaryMarkdown(report, broken, false)).toBe(`### ❌ kind-in-dind could not start the cluster \`shop-1\`

> node-image: no<br>&#96;&#96;&#96;x

The stage **Get the node image** failed, 3.1s in. The cluster's logs are in <code>/logs/a&#124;b</code>.

\`\`\`
${textGantt(broken)}
\`\`\`
`)
})

test('a failure shows versions, and no address of what is gone', () => {
  const markdown = summaryMarkdown(aReport({ nodes: [], images: [], failure: 'wait: no' }), stages, true)
  expect(markdown).toContain('| Kubernetes | `v1.34.4` |')
  expect(markdown).not.toContain('https://docker:32800')
})

test('a failure before anything began is its sentence', () => {
  expect(summaryMarkdown({ ...newReport(), failure: 'workers: no' }, [], true)).toBe(
    '### ❌ kind-in-dind could not start the cluster\n\n> workers: no\n',
  )
})

test('the output of a program is shown as it is, below the sentence', () => {
  const output = Array.from({ length: 25 }, (_, line) => `  line *${line}*`)
  const markdown = summaryMarkdown({ ...newReport(), failure: ['kind: no', ...output].join('\n') }, [], true)
  expect(markdown).toContain(`> kind: no\n\n\`\`\`\n${output.join('\n')}\n\`\`\`\n`)
})

test('however much there is to say, it stays below the 1 MiB that the hosts take', () => {
  const much = 'x'.repeat(2 ** 20)
  const many = Array.from({ length: 500 }, (_, index) => ({ reference: `app:${index}`, how: 'streamed' }))
  const markdown = summaryMarkdown(aReport({ failure: much, images: many, warnings: [much, much] }), stages, true)
  expect(Buffer.byteLength(markdown)).toBeLessThan(2 ** 20)
  expect(markdown).toContain('and 440 more')
})

test('Mermaid gets a section for each stage, one that failed in red, and no character that means something to it', () => {
  expect(
    mermaidGantt([
      { name: 'Get a:b;c#d', start: 12.4, end: 12.6, failed: false },
      { name: 'Load', start: 1000, end: 3000, failed: true },
    ]).split('\n'),
  ).toEqual([
    '%%{init: {"gantt":{"leftPadding":86,"rightPadding":10}}}%%',
    'gantt',
    '    dateFormat x',
    '    axisFormat %s s',
    '    section Get a b c d',
    '    0.0s :12, 13',
    '    section Load',
    '    2.0s :crit, 1000, 3000',
  ])
})

test('as text, each stage is a bar where and as long as it was', () => {
  const [first, second] = [
    { name: 'one', start: 0, end: 5000, failed: false },
    { name: 'second', start: 5000, end: 10_000, failed: true },
  ]
  expect(textGantt([first, second] as Stage[], 10)).toBe(
    'one       5.0s │█████     │\nsecond    5.0s │     ▒▒▒▒▒│ failed',
  )
})

test('what is known of no image has no column', () => {
  const images = [{ reference: 'app:ci', how: 'was there' }]
  expect(summaryMarkdown(aReport({ images }), [], true)).toContain(
    '| image | how it came |\n|:---|:---|\n| `app:ci` | was there |',
  )
})

test('what took no time is not shown, unless it failed; the innermost failure is where it failed', () => {
  const shown = shownStages(
    [
      { name: 'all', start: 0, end: undefined, failed: false },
      { name: 'part', start: 500, end: 520, failed: true },
      { name: 'quick', start: 600, end: 640, failed: false },
    ],
    10_000,
  )
  expect(shown.map(({ name }) => name)).toEqual(['all', 'part'])
  expect(failedStage(shown)?.name).toBe('part')
})

test('what failed first is the stage in which it failed, not what was ended for it', () => {
  const together = [
    { name: 'Find the engine', start: 200, end: 1200, failed: true },
    { name: 'Get kind', start: 200, end: 1201, failed: true },
  ]
  expect(failedStage(together)?.name).toBe('Find the engine')
})

test.each([
  ['app:ci', '`app:ci`'],
  ['a|b', '<code>a&#124;b</code>'],
  ['a`b*', '<code>a&#96;b&#42;</code>'],
  ['<b>', '`<b>`'],
  ['<b>`', '<code>&#60;b&#62;&#96;</code>'],
])('%j is code', (text, markdown) => {
  expect(code(text)).toBe(markdown)
})

test.each([
  ['config: 2 nodes', 'config: 2 nodes'],
  ['<img src=x> a|b *c* [d](e)', '&#60;img src=x&#62; a&#124;b &#42;c&#42; &#91;d&#93;&#40;e&#41;'],
  ['@team :ship: $HOME', '&#64;team &#58;ship: &#36;HOME'],
  ['one\ntwo', 'one<br>two'],
])('%j is text', (text, markdown) => {
  expect(plain(text)).toBe(markdown)
})

test('a text cannot end the fence around it', () => {
  expect(fenced('a\n````\nb')).toBe('`````\na\n````\nb\n`````')
})
