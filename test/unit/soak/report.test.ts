import { expect, test } from 'vitest'
import { ticksUpTo } from '../../../campaigns/soak/axis.ts'
import { fillSection, soakTable } from '../../../campaigns/soak/docs-table.ts'
import { pictureOf } from '../../../campaigns/soak/picture.ts'
import type { Sample } from '../../../campaigns/soak/sample.ts'
import { summarizeSoak, type Summary } from '../../../campaigns/soak/summary.ts'

function sample(minute: number, given: Partial<Sample> = {}): Sample {
  return {
    atSec: minute * 60,
    runs: 600,
    runsPerSec: 10,
    p50Ms: 9,
    p99Ms: 80,
    rssMiB: 120,
    peakRssMiB: 150,
    heldMiB: 30,
    descriptors: 40,
    handles: 3,
    sandboxes: 5,
    processes: 20,
    leaks: {},
    unexpected: 0,
    ...given,
  }
}

function summary(samples: readonly Sample[], given: Partial<Parameters<typeof summarizeSoak>[0]> = {}): Summary {
  return summarizeSoak({
    options: { engine: 'local', minutes: samples.length, concurrency: 4, seed: 1, everySec: 60 },
    startedAt: '2026-01-02T03:04:05.000Z',
    durationSec: samples.length * 60,
    runs: 36_000,
    runsByKind: { quick: 36_000 },
    sandboxesMade: 900,
    unexpectedRuns: 0,
    unexpected: [],
    leaks: [],
    samples,
    ...given,
  })
}

const hour = Array.from({ length: 60 }, (_, index) => sample(index + 1))

test('a soak without leak, growth or unexpected outcome has no problem; each of them is one', () => {
  const leak = { kind: 'containers', what: 'sg-1 (running)' }
  const growing = hour.map((one, minute) => ({ ...one, heldMiB: 30 + minute / 4, rssMiB: 120 + minute }))
  expect(summary(hour).problems).toEqual([])
  expect(summary(hour, { leaks: [leak] }).problems).toEqual(['1 leaks'])
  expect(summary(hour, { unexpectedRuns: 2 }).problems).toEqual(['2 runs did not come out as expected'])
  expect(summary(hour, { runs: 0 }).problems).toEqual(['no script ran'])
  expect(summary(growing).problems).toEqual([
    'held memory: 15.00 MiB/h (with 99% certainty at least 15.00, bound 4)',
    'resident memory: 60.00 MiB/h (with 99% certainty at least 60.00, bound 16)',
  ])
})

test('the table is between its markers and has the command, the machine and the leak rate', () => {
  const page = 'before\n<!-- soak: written by campaigns/soak/report.ts -->\nold\n<!-- soak: end -->\nafter\n'
  const text = fillSection(page, soakTable([summary(hour)]))
  expect(fillSection(text, soakTable([summary(hour)]))).toBe(text)
  expect(text).toMatch(/^before\n.*\nafter\n$/s)
  expect(text).not.toContain('old')
  expect(text).toContain('| runs | 36,000 |')
  expect(text).toContain('| leaks per 1,000,000 runs | 0 (below 84 at 95%) |')
  expect(text).toContain('`npm run soak -- --minutes 60 --engine local --concurrency 4 --seed 1`, 2026-01-02, ')
  expect(() => fillSection('no markers', 'x')).toThrow('lacks the markers')
})

test('the picture has a line for each series, axes with units, and a title', () => {
  const picture = pictureOf(summary([...hour.slice(0, 30), sample(31, { p50Ms: Number.NaN }), ...hour.slice(31)]))
  expect(picture).toContain('>Soak of the engine local: 60 minutes, 4 runs at once<')
  expect(picture).toContain('memory of the host process, MiB')
  expect(picture).toContain('latency of a run that only answers, ms')
  expect(picture.match(/time, minutes/g)).toHaveLength(2)
  const paths = [...picture.matchAll(/ d="([^"]*)"/g)].map(([, path = '']) => path.match(/[ML]/g)?.length)
  expect(paths).toEqual([60, 60, 60, 60, 59])
  expect(picture).not.toContain('NaN')
})

test('ticks are round and reach the highest value', () => {
  expect([ticksUpTo(62), ticksUpTo(0.7), ticksUpTo(200)]).toEqual([
    [0, 20, 40, 60, 80],
    [0, 0.2, 0.4, 0.6, 0.8],
    [0, 50, 100, 150, 200],
  ])
})
