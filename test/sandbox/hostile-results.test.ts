import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createSandglass, type ExecutionResult } from '../../src/index.ts'
import { requireLocalEngine } from '../support/local-engine.ts'

const { skip } = await requireLocalEngine()
const TIMEOUT_SEC = 5
const HOSTILE = 24
const limits = { executionTimeoutSec: TIMEOUT_SEC }

/** A result, with the milliseconds until it came: from the call, and from the start of the run. */
interface Timed {
  readonly result: ExecutionResult
  readonly ms: number
  readonly runMs: number
}

describe.skipIf(skip)('results that use up the time for checks', () => {
  test('delay neither an honest result nor a sandbox, and settle within timeout + 5 s themselves', async () => {
    await using sg = await createSandglass({ engine: 'local', poolSize: 1, maxOverflow: 1 })
    const words = z.array(z.string().regex(/^(\w+\s?)*$/))
    const numbers = z.array(z.number())
    const timed = async (script: string, output: z.ZodType): Promise<Timed> => {
      const called = performance.now()
      let started = Number.NaN
      const onEvent = ({ type }: { readonly type: string }): void => {
        if (type === 'started') started = performance.now()
      }
      const result = await sg.run(script, { output, limits, onEvent })
      const ended = performance.now()
      return { result, ms: ended - called, runMs: ended - started }
    }
    const hostile = Array.from({ length: HOSTILE }, () => timed('emit_result(["word " * 40 + "!"] * 20)', words))
    const honest = await timed('emit_result(list(range(20_000)))', numbers)
    expect(honest.result).toMatchObject({ success: true, error: null })
    const ended = await Promise.all(hostile)
    for (const { result } of ended) {
      expect(result).toMatchObject({ success: false, status: 'failed', hasResult: true })
      expect(result.error).toMatch(
        /^the result cannot be checked against the schema(?: within 1000 ms|: too many other values are being checked; try again)$/,
      )
    }
    for (const { runMs } of [honest, ...ended]) expect(runMs).toBeLessThan((TIMEOUT_SEC + 5) * 1000)
    // Six checks of a second each were ahead of it.
    expect(honest.ms).toBeLessThan(Math.max(...ended.map(({ ms }) => ms)))
  })
})
