import { closeSync, openSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import type { Kind } from '../../campaigns/soak/kind.ts'
import { soak } from '../../campaigns/soak/soak.ts'
import type { SoakOptions } from '../../campaigns/soak/summary.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const SHORT: SoakOptions = { engine: 'local', minutes: 0.3, concurrency: 3, seed: 7, everySec: 6 }
const BRIEF: SoakOptions = { ...SHORT, minutes: 0.01, everySec: 0.5, concurrency: 1 }

/** A kind of run that has a side effect and the expected outcome. */
function quickAnd(act: () => unknown): Kind {
  return {
    name: 'quick and more',
    weight: 1,
    async run({ sg }) {
      act()
      const { finalData } = await sg.run('emit_result(1)')
      return finalData === 1 ? undefined : 'no result'
    },
  }
}

describe.skipIf(skip)('a soak of the engine local', () => {
  test('of every kind of run for twenty seconds has no leak and no unexpected outcome', async () => {
    const { problems, leaks, unexpected, samples, runsByKind } = await soak(SHORT)
    expect({ problems, leaks, unexpected }).toEqual({ problems: [], leaks: [], unexpected: [] })
    expect(samples.length).toBeGreaterThan(1)
    expect(Object.values(runsByKind).every((count) => count >= 3)).toBe(true)
    expect(Object.keys(runsByKind)).toHaveLength(41)
  }, 240_000)

  test('reports runs that leave a descriptor open', async () => {
    const opened: number[] = []
    const kind = quickAnd(() => opened.push(openSync('/etc/hostname', 'r')))
    const { leaks, problems } = await soak(BRIEF, { kinds: [kind], settleMs: 500 })
    for (const fd of opened) closeSync(fd)
    expect(leaks.map(({ kind: name }) => name)).toContain('descriptors: /etc/hostname')
    expect(problems).toEqual([`${leaks.length} leaks`])
  })

  test('reports runs with an unexpected outcome', async () => {
    const wrong: Kind = {
      name: 'wrong',
      weight: 1,
      run: async ({ sg }) => `${(await sg.run('emit_result(1)')).status} in place of nothing`,
    }
    const { problems, unexpected, unexpectedRuns } = await soak(BRIEF, { kinds: [wrong] })
    expect(problems).toEqual([`${unexpectedRuns} runs did not come out as expected`])
    expect(unexpected[0]).toEqual({ kind: 'wrong', said: 'completed in place of nothing' })
  })
})
