import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { answerOf, describeAnswer } from '../driver/answer.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import type { TestedEngine } from '../engines/tested.ts'

const AT_ONCE = 4

/** Scripts that a timeout interrupts in plain code, while sending a line, making a traceback or handling an exception. */
const SCRIPTS = {
  'a plain loop': 'while True:\n    pass',
  'lines being sent': 'while True:\n    emit_log("x")',
  'tracebacks being made':
    'import traceback\ndef f(n):\n    return f(n + 1)\nwhile True:\n    try:\n        f(0)\n    except RecursionError:\n        traceback.format_exc()',
  'exceptions being handled':
    'while True:\n    try:\n        raise ValueError("x" * 10000)\n    except ValueError as e:\n        str(e)',
}

/** Only the harness decides the outcome, so engines other than local may run fewer `rounds`. */
export async function shortTimeouts(
  tested: TestedEngine,
  { rounds = 25 }: { readonly rounds?: number } = {},
): Promise<void> {
  const { skip, open } = await tested.ready()
  describe.skipIf(skip)(`timeouts of 1 to 40 ms, four runs at a time, on the ${tested.name} engine`, () => {
    let engine: EngineUnderTest
    beforeAll(() => {
      engine = open()
    })
    afterAll(() => engine.close())

    test.each(Object.entries(SCRIPTS))('are told as timeouts whatever they interrupt: %s', async (_what, script) => {
      await using sandglass = await engine.open({ poolSize: AT_ONCE, limits: { maxOutputBytes: 64 * 1024 * 1024 } })
      for (let round = 0; round < rounds; round += 1) {
        const executionTimeoutSec = (1 + ((round * 7) % 40)) / 1000
        const runs = Array.from({ length: AT_ONCE }, () =>
          answerOf(sandglass, script, { limits: { executionTimeoutSec } }),
        )
        const others = (await Promise.all(runs)).filter(({ errorKind }) => errorKind !== 'timeout')
        expect(others.map(describeAnswer)).toEqual([])
      }
    })
  })
}
