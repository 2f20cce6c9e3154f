import { describe, expect, test, vi } from 'vitest'
import { conformanceCases, engineConformance, selectCases, type TestBody } from '../../src/testing/index.ts'
import { SHOWN_BY } from '../sandbox/conformance/requirements.ts'
import { CONFORMANCE, TESTED_ENGINES } from '../support/walls.ts'

const cases = conformanceCases()
const titlesOn = (engine: (typeof TESTED_ENGINES)[number]): readonly string[] =>
  selectCases(cases, CONFORMANCE[engine]).map(({ part, title }) => `${part} > ${title}`)

describe('the conformance suite', () => {
  test('names the walls of every case, each once, and has no title twice', () => {
    expect(cases.length).toBeGreaterThan(120)
    expect(cases.filter(({ walls }) => walls.length === 0 || new Set(walls).size < walls.length)).toEqual([])
    expect(new Set(cases.map(({ part, title }) => `${part} > ${title}`)).size).toBe(cases.length)
  })

  test('runs every case on some engine, all on local, and each wall on a further engine', () => {
    const run = new Set(TESTED_ENGINES.flatMap(titlesOn))
    expect(cases.map(({ part, title }) => `${part} > ${title}`).filter((title) => !run.has(title))).toEqual([])
    expect(titlesOn('local')).toHaveLength(cases.length)
    const elsewhere = new Set(TESTED_ENGINES.flatMap((engine) => CONFORMANCE[engine]?.walls ?? []))
    const walls = new Set(cases.flatMap((one) => one.walls))
    // The harness is the same everywhere: local runs all of its cases, the others a sample.
    expect([...walls].filter((wall) => !elsewhere.has(wall))).toEqual(['harness'])
  })

  test('runs on each engine the cases of its own walls, and a sample of the rest', () => {
    for (const engine of TESTED_ENGINES) {
      const only = CONFORMANCE[engine]
      if (only === undefined) continue
      const run = new Set(titlesOn(engine))
      const decided = cases.filter(({ walls }) => walls.some((wall) => only.walls.includes(wall)))
      expect(decided.filter(({ part, title }) => !run.has(`${part} > ${title}`))).toEqual([])
      expect(run.size - decided.length).toBe(Math.ceil((cases.length - decided.length) / only.sampleEvery))
    }
  })

  test.each([
    ['an object, as in node:test', {}],
    ['a function, as in vitest', () => undefined],
  ])('skips a case, with the reason, where the context is %s', async (_what, context: object) => {
    const bodies: TestBody[] = []
    engineConformance({
      name: 'none',
      makeEngine: () => Promise.reject(new Error('the engine is not asked')),
      describe: (_name, body) => body(),
      it: (_title, body) => bodies.push(body),
      unavailable: () => Promise.resolve('nothing works here'),
    })
    const log = vi.spyOn(console, 'log').mockReturnValue()
    const reasons: string[] = []
    await bodies[0]?.(Object.assign(context, { skip: (reason: string) => reasons.push(reason) }))
    expect(reasons).toEqual([expect.stringMatching(/^none: .*: nothing works here$/)])
    expect(log).toHaveBeenCalledWith(`skipped: ${reasons[0]}`)
    log.mockRestore()
  })

  test('has the cases that the table of requirements names', () => {
    const titles = new Set(cases.map(({ title }) => title))
    expect(
      Object.values(SHOWN_BY)
        .flat()
        .filter((title) => !titles.has(title)),
    ).toEqual([])
  })
})
