import { LIFECYCLE_OPTIONS } from '../../src/options/lifecycle.ts'
import { judgeOptions } from './judge.ts'

judgeOptions(LIFECYCLE_OPTIONS, {
  good: [
    ['summary', 'always', { summary: 'always' }],
    ['summary', 'on-failure', { summary: 'on-failure' }],
    ['logs', 'on-failure', { logs: 'on-failure' }],
    ['logs', 'always', { logs: 'always' }],
    ['logs', ' never ', { logs: 'never' }],
    ['logs-dir', 'build/kind logs', { logsDir: 'build/kind logs' }],
    ['keep', true, { keep: true }],
    ['keep', 'TRUE', { keep: true }],
    ['keep', 'false', { keep: false }],
    ['lifetime', '90m', { lifetime: 5_400_000 }],
    ['lifetime', '72h', { lifetime: 259_200_000 }],
  ],
  wrong: [
    ['summary: "sometimes" is not one of on-failure, always and never', { summary: 'sometimes' }],
    ['logs: "sometimes" is not one of on-failure, always and never', { logs: 'sometimes' }],
    ['logs: false is not text', { logs: false }],
    ['logs-dir: a value is missing', { 'logs-dir': true }],
    ['keep: "yes" is neither true nor false', { keep: 'yes' }],
    ['keep: 1 is neither true nor false', { keep: 1 }],
    ['lifetime: "0" is over before the cluster is up; at least 1m', { lifetime: '0' }],
    ['lifetime: "721h" is longer than a job may take; at most 720h', { lifetime: '721h' }],
    ['lifetime: 6 is not a duration; write it with its unit, such as 90s or 5m', { lifetime: 6 }],
  ],
})
