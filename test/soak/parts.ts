/** The parts of the soak: each makes a place of its own, and tells what was not as it must be. */
import type { Running } from '../../src/lib/run.ts'
import { createEnds, type Ends } from '../e2e/ends.ts'
import { difference, judge } from '../e2e/ends-judge.ts'
import { ALL_RUNS, HOSTS, isThere, type Run, SIGNALS, STAGES, TARGETS } from '../e2e/ends-table.ts'
import { startGitHubJob } from '../e2e/github-job.ts'
import { docker, runner } from '../e2e/lab.ts'
import { labInputs } from '../e2e/life.ts'
import { type Cancels, type Crowd, FIGURES, type Figures, type Results, type RowResult } from './results.ts'

type Say = (line: string) => void

/** Does something in a place, which is removed afterwards. */
async function within<T>(work: (ends: Ends) => Promise<T>): Promise<T> {
  const ends = await createEnds()
  try {
    return await work(ends)
  } finally {
    await ends.remove()
  }
}

/** Ends jobs in every way, one on each host side by side. @param most how many; all by default */
export function rows(say: Say, most: number): Promise<Omit<NonNullable<Results['rows']>, 'on'>> {
  const pairs = STAGES.flatMap(stage =>
    SIGNALS.flatMap(signal =>
      TARGETS.filter(target => isThere({ stage, target })).map(target =>
        HOSTS.map((host): Run => ({ stage, signal, target, host })),
      ),
    ),
  )
  // Of every stage some, where not all are wanted.
  const step = Math.max(1, pairs.length / Math.ceil(most / 2))
  const chosen = pairs.filter((_, index) => Math.floor(index / step) !== Math.floor((index - 1) / step))
  return within(async ends => {
    const results: RowResult[] = []
    for (const pair of chosen) {
      const before = await ends.look()
      const outcomes = await Promise.allSettled(pair.map(run => ends.run(run)))
      const left = difference(before, await ends.look())
      for (const [index, outcome] of outcomes.entries()) {
        const run = pair[index] as Run
        const wrong =
          outcome.status === 'rejected'
            ? [`${outcome.reason}`]
            : [...judge(run, outcome.value), ...(index === 0 ? left : [])]
        results.push({ run, wrong })
        say(`${Object.values(run).join(', ')}: ${wrong.length === 0 ? 'as it must' : wrong.join('; ')}`)
        if (wrong.length > 0 && outcome.status === 'fulfilled') say(`${outcome.value.log}\n${outcome.value.next ?? ''}`)
      }
    }
    return { results, of: ALL_RUNS.length }
  })
}

/** Starts, uses and removes a cluster again and again. */
export function rounds(say: Say, count: number): Promise<Omit<NonNullable<Results['rounds']>, 'on'>> {
  return within(async ends => {
    const figures = [await measure(ends)]
    const wrong: string[] = []
    for (let round = 1; round <= count; round++) {
      wrong.push(...(await oneJob(ends, `round-${round}`, 'rounds')).wrong)
      figures.push(await measure(ends))
      say(`round ${round}: ${JSON.stringify(figures.at(-1))}`)
    }
    return { figures, wrong }
  })
}

/** Four jobs at once; then jobs in a row, two at a time, of which one in five is killed. */
export function crowd(say: Say, count: number): Promise<Omit<NonNullable<Results['crowd']>, 'on'>> {
  return within(async ends => {
    // A runner's folders are there before its job, and stay.
    const runners = ['at-once-1', 'at-once-2', 'at-once-3', 'at-once-4', 'lane-1', 'lane-2']
    for (const runner of runners) await startGitHubJob(ends.step, { id: 'none', runner })
    const before = await ends.look()
    const four = await Promise.all([1, 2, 3, 4].map(number => oneJob(ends, `at-once-${number}`)))
    const atOnce = sum(four, difference(before, await ends.look()))
    say(`four at once: ${atOnce.wrong.join('; ') || 'as they must'}`)

    const jobs: Job[] = []
    let next = 1
    const lane = async (owner: string): Promise<void> => {
      while (next <= count) {
        const number = next++
        const job =
          number % 5 === 0 ? await killed(ends, number, owner) : await oneJob(ends, `in-a-row-${number}`, owner)
        say(`job ${number}: ${job.wrong.join('; ') || 'as it must'}`)
        jobs.push(job)
      }
    }
    await Promise.all([lane('lane-1'), lane('lane-2')])
    return { atOnce, inARow: sum(jobs, difference(before, await ends.look())) }
  })
}

/** Cancels jobs on Buildkite while kubeadm is at work, with processes that keep the machine busy. */
export function cancel(
  say: Say,
  count: number,
  loads: readonly number[],
): Promise<Omit<NonNullable<Results['cancel']>, 'on'>> {
  const run: Run = { stage: 'kubeadm', signal: 'SIGTERM', target: 'group', host: 'buildkite' }
  return within(async ends => {
    const results: Cancels[] = []
    for (const busy of loads) {
      const processes = Array.from({ length: busy }, (): Running => runner.start(['sh', '-c', 'while :; do :; done']))
      const [removing, over, wrong]: [number[], number[], string[]] = [[], [], []]
      try {
        for (let number = 0; number < count; number++) {
          const before = await ends.look()
          const outcome = await ends.run(run)
          if (outcome.removing === undefined) wrong.push('the engine began no removal')
          else removing.push(outcome.removing)
          over.push(outcome.over)
          // What takes longer goes on in the engine.
          const isDetached = outcome.log.includes('The engine has not removed all within')
          if (!isDetached) wrong.push(...judge(run, outcome), ...difference(before, await ends.look()))
          say(
            `cancel with ${busy} busy: ${outcome.removing?.toFixed(0)} ms, ${outcome.over.toFixed(0)} ms${isDetached ? ', detached' : ''}`,
          )
          if (isDetached) await ends.next('buildkite')
        }
      } finally {
        for (const process of processes) process.end()
        await Promise.allSettled(processes.map(({ ended }) => ended))
      }
      results.push({ busy, removing, over, wrong })
    }
    return { loads: results }
  })
}

/** A job as it went. */
interface Job {
  readonly wrong: readonly string[]
  readonly took: number | undefined
  readonly isKilled: boolean
}

/** A whole job on GitHub: pre, a look at its API server, post. */
async function oneJob({ step, ground }: Ends, id: string, owner = id): Promise<Job> {
  const started = performance.now()
  const job = await startGitHubJob(step, { id, runner: owner })
  const use = await job.use(labInputs(ground))
  const readyz = await job.run('kubectl get --raw /readyz')
  const post = await job.post(use)
  const steps = { pre: use, 'its command': readyz, post }
  const wrong = Object.entries(steps).flatMap(([name, { code, log }]) =>
    code === 0 ? [] : [`${id}: ${name} failed: ${log}`],
  )
  return { wrong, took: performance.now() - started, isKilled: false }
}

const KILLED = ['nodes', 'kubeadm', 'preload', 'waiting', 'just after ready', 'network'] as const

/** A job that is killed with all that it runs; the next one of its runner cleans up. */
async function killed(ends: Ends, number: number, owner: string): Promise<Job> {
  const stage = KILLED[(number / 5 - 1) % KILLED.length] ?? 'nodes'
  const run: Run = { stage, signal: 'SIGKILL', target: 'group', host: 'github' }
  return { wrong: judge(run, await ends.run(run, owner)), took: undefined, isKilled: true }
}

function sum(jobs: readonly Job[], left: readonly string[]): Crowd {
  return {
    jobs: jobs.length,
    killed: jobs.filter(({ isKilled }) => isKilled).length,
    wrong: [...jobs.flatMap(({ wrong }) => wrong), ...left],
    took: jobs.flatMap(({ took }) => took ?? []),
  }
}

/** Prints the figures that the engine's container has of itself, one a line, in the order of `FIGURES`. */
const MEASURE = `
docker ps --all --quiet | wc -l
docker network ls --quiet | wc -l
docker volume ls --quiet | wc -l
docker image ls --all --quiet | wc -l
wc -l </proc/1/mountinfo
ls /sys/class/net | wc -l
{ iptables-save; ip6tables-save; } 2>/dev/null | grep -c '^-A'
ls -d /proc/[0-9]* | wc -l
for pid in $(grep -lsE '^(dockerd|containerd)$' /proc/[0-9]*/comm | cut -d/ -f3); do ls "/proc/$pid/fd"; done | wc -l
sync; du -s -x -k /var/lib/docker | cut -f1
`

async function measure({ sidecar }: Ends): Promise<Figures> {
  const printed = (await docker('exec', sidecar.name, 'sh', '-c', MEASURE)).trim().split('\n').map(Number)
  if (printed.length !== FIGURES.length || printed.some(Number.isNaN)) throw new Error(`figures: ${printed.join(', ')}`)
  return Object.fromEntries(FIGURES.map((name, index) => [name, printed[index] ?? 0])) as unknown as Figures
}
