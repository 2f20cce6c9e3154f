import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const rates = defineTool({
  name: 'rates',
  description: 'Rates by currency.',
  effect: 'read',
  input: z.object({}),
  output: z.record(z.string(), z.number()),
  execute: () => ({ USD: 1.1 }),
})
const tools = [rates]
const mode = 'interactive'

await onLocal((at) => {
  describe('INTERACTIVE mode', () => {
    test('steps see all data so far, in one sandbox, until one gives the result (OR-03)', async () => {
      const model = scriptedModel(
        'emit_intermediate("rates", rates())',
        (prompt) => {
          expect(prompt).toContain('step 1, "rates": {"USD":1.1}')
          expect(prompt).toContain('Do NOT re-fetch data already shown above.')
          return 'emit_intermediate("usd", collected[0]["data"]["USD"] * 2)'
        },
        (prompt) => {
          expect(prompt).toContain('step 1, "rates": {"USD":1.1}')
          expect(prompt).toContain('step 2, "usd": 2.2')
          return 'emit_result(collected[1]["data"])'
        },
      )
      const result = await at.sg.solve('Twice the rate', { model, tools, mode })
      expect(result).toMatchObject({ success: true, finalData: 2.2, record: { mode, attempts: [], totalToolCalls: 1 } })
      const { steps } = result.record
      expect(steps.map(({ number, ok, attempts }) => [number, ok, attempts.length])).toEqual([
        [1, true, 1],
        [2, true, 1],
        [3, true, 1],
      ])
      const ids = steps.flatMap(({ attempts }) => attempts.map(({ sandbox }) => sandbox?.id))
      expect(new Set(ids).size).toBe(1)
    })

    test('the model is told of displays that a step could not show', async () => {
      const show = 'for n in range(150): display(n)'
      const told = /displays were left out: .* at most 100/
      const model = scriptedModel(
        `${show}\n1 / 0`,
        (prompt) => {
          expect(prompt).toMatch(new RegExp(`^Warning: ${told.source}`, 'm'))
          return `${show}\nemit_intermediate("n", float("nan"))`
        },
        (prompt) => {
          expect(prompt).toMatch(new RegExp(`^step 1, "warning": "${told.source}`, 'm'))
          expect(prompt).toMatch(/^step 1, "warning": ".*NaN.*null/im)
          return 'emit_result(1)'
        },
      )
      const result = await at.sg.solve('Anything', { model, mode, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: 1 })
    })

    test('a step that emits nothing is a failed attempt with feedback (OR-03)', async () => {
      const model = scriptedModel('x = rates()', (prompt) => {
        expect(prompt).toContain('the step emitted nothing')
        return 'emit_result(rates()["USD"])'
      })
      const result = await at.sg.solve('The rate', { model, tools, mode })
      expect(result.finalData).toBe(1.1)
      expect(result.record.steps[0]?.attempts.map(({ status }) => status)).toEqual(['no-data', 'completed'])
    })

    test('a step whose retries are spent ends the run with its error (OR-03, OR-08)', async () => {
      const model = scriptedModel('emit_intermediate("x", 1 / 0)')
      const result = await at.sg.solve('Anything', { model, mode, maxRetries: 1 })
      expect(model.prompts.length).toBe(2)
      expect(result).toMatchObject({ success: false, record: { status: 'retries-spent' } })
      expect(result.error).toContain('ZeroDivisionError')
    })

    test.each(['strict', 'off'] as const)(
      'the same result twice is warned of, and then only the answer is wanted, without tools: policy %s (OR-04)',
      async (policy) => {
        const again = 'emit_intermediate("rates", rates())'
        const model = scriptedModel(
          again,
          (prompt) => {
            expect(prompt).not.toContain('You repeat yourself')
            return again
          },
          (prompt) => {
            expect(prompt).toContain('You repeat yourself')
            expect(prompt).toContain('After one more script that adds nothing')
            expect(prompt).toContain('def rates')
            return again
          },
          (prompt) => {
            expect(prompt).toContain(
              'There are no tools in the final step. The only function that you can call is emit_result',
            )
            expect(prompt).not.toContain('def rates')
            return 'emit_result(rates())'
          },
          (prompt) => {
            expect(prompt).toContain('There are no tools in the final step: rates cannot be called')
            expect(prompt).not.toContain('Did you mean')
            return 'emit_result([item["data"]["USD"] for item in collected])'
          },
        )
        const result = await at.sg.solve('The rate', { model, tools, mode, policy })
        expect(result).toMatchObject({ finalData: [1.1, 1.1, 1.1], error: null })
        const [, second, third, last] = result.record.steps
        expect(second).toMatchObject({ forceFinish: false, attempts: [{ repetition: 'same-result' }] })
        expect(third).toMatchObject({ forceFinish: false, attempts: [{ repetition: 'same-result' }] })
        const refused = policy === 'off' ? 'failed' : 'rejected'
        expect(last).toMatchObject({ forceFinish: true, attempts: [{ status: refused }, { status: 'completed' }] })
      },
    )

    test('maxRepetitions: 1 gives no warning (OR-04)', async () => {
      const model = scriptedModel('emit_intermediate("a", 1)', 'emit_intermediate("a", 1)', 'emit_result(2)')
      const result = await at.sg.solve('Anything', { model, mode, maxRepetitions: 1 })
      expect(result.record.steps.map(({ forceFinish }) => forceFinish)).toEqual([false, false, true])
      await expect(at.sg.solve('Anything', { model, mode, maxRepetitions: 0 })).rejects.toThrow(/maxRepetitions/)
    })

    test('a step that adds something ends the count (OR-04)', async () => {
      const steps = [1, 1, 2, 2, 3, 3]
      const model = scriptedModel(...(steps.map((n) => `emit_intermediate("n", ${n})`) as [string]), 'emit_result(0)')
      const result = await at.sg.solve('Anything', { model, mode })
      expect(result.record.steps.some(({ forceFinish }) => forceFinish)).toBe(false)
      expect(model.prompts.map((prompt) => prompt.includes('You repeat yourself'))).toEqual([
        false,
        false,
        true,
        false,
        true,
        false,
        true,
      ])
    })

    test('alternating results are a cycle (OR-04)', async () => {
      const model = scriptedModel(
        'emit_intermediate("a", 1)',
        'emit_intermediate("b", 2)',
        'emit_intermediate("a", 1)',
        'emit_result(len(collected))',
      )
      const result = await at.sg.solve('Anything', { model, mode, maxRepetitions: 1 })
      expect(result.finalData).toBe(3)
      expect(result.record.steps.map(({ forceFinish }) => forceFinish)).toEqual([false, false, false, true])
    })

    test('maxSteps ends it, with the collected data (OR-03)', async () => {
      let step = 0
      const model = scriptedModel(() => `emit_intermediate("n", ${(step += 1)})`)
      const result = await at.sg.solve('Anything', { model, mode, maxSteps: 2 })
      expect(result).toMatchObject({
        success: false,
        error: '2 steps returned no result: none of them called emit_result',
        partial: [
          { step: 1, label: 'n', data: 1 },
          { step: 2, label: 'n', data: 2 },
        ],
        record: { status: 'steps-spent' },
      })
    })

    test('steps pass on a JSON value on request', async () => {
      const model = scriptedModel(
        'emit_intermediate("state", state + 1)\nemit_intermediate("x", "a")',
        'emit_intermediate("state", state + 1)\nemit_intermediate("x", "b")',
        'emit_result(state)',
      )
      const result = await at.sg.solve('Count', { model, mode, state: 40 })
      expect(result).toMatchObject({ finalData: 42, error: null })
    })

    test('`collected` is data, whatever it contains (PAR-010)', async () => {
      const values = ["'''", '"""', '\\', '\u2028', '{}', "__import__('os').system('id')", null, true, 'a\nb', '```']
      const model = scriptedModel('emit_intermediate("given", given)', 'emit_result(collected[0]["data"] == given)')
      const result = await at.sg.solve('Compare', { model, mode, inputs: { given: values } })
      expect(result).toMatchObject({ finalData: true, error: null })
      expect(model.prompts[1]?.split('```').length).toBe(model.prompts[0]?.split('```').length)
    })

    test('a cycle within a step ends it, and an additional step that only answers follows (OR-04)', async () => {
      const model = scriptedModel('emit_intermediate("a", 1)', 'emit_result(1 / 0)', 'emit_result(2 / 0)', (prompt) => {
        expect(prompt).toContain('Write one last Python script')
        return 'emit_result(collected[0]["data"])'
      })
      const result = await at.sg.solve('Anything', { model, mode, maxRetries: 1, maxSteps: 2 })
      expect(result).toMatchObject({ success: true, finalData: 1 })
      expect(result.record.steps.map(({ number, forceFinish, ok }) => [number, forceFinish, ok])).toEqual([
        [1, false, true],
        [2, false, false],
        [3, true, true],
      ])
      expect(result.record.steps[1]?.attempts.map(({ repetition }) => repetition)).toEqual([null, 'same-error'])
    })

    test('a run that repeats itself and cannot be finished is stagnated, and has the partial answer (OR-04, OR-08)', async () => {
      const model = scriptedModel('emit_intermediate("a", 1)', 'emit_intermediate("a", 1)', 'emit_result(1 / 0)')
      const result = await at.sg.solve('Anything', { model, mode, maxRetries: 1, maxSteps: 2, maxRepetitions: 1 })
      expect(model.prompts.length).toBe(4)
      expect(result).toMatchObject({
        success: false,
        error: 'ZeroDivisionError: division by zero',
        partial: [
          { step: 1, label: 'a', data: 1 },
          { step: 2, label: 'a', data: 1 },
        ],
        record: { status: 'stagnated' },
      })
    })

    test('a mistake that recurs after successful steps is a new one (OR-04)', async () => {
      const model = scriptedModel(
        'emit_intermediate("a", {}["k"])',
        'emit_intermediate("a", 1)',
        'emit_intermediate("b", {}["k"])',
        (prompt) => {
          expect(prompt).not.toContain('This is the same')
          return 'emit_intermediate("b", 2)'
        },
        'emit_result(rates()["USD"])',
      )
      const result = await at.sg.solve('Anything', { model, tools, mode })
      expect(result).toMatchObject({ finalData: 1.1, error: null })
      expect(result.record.steps.map(({ forceFinish }) => forceFinish)).toEqual([false, false, false])
    })

    test('after all tool calls are spent, one step answers from the collected data', async () => {
      const model = scriptedModel('emit_intermediate("rates", rates())', (prompt) => {
        expect(prompt).toContain('Write one last Python script')
        return 'emit_result(collected[0]["data"]["USD"])'
      })
      const budget = { toolCalls: 1 }
      const result = await at.sg.solve('The rate', { model, tools, mode, budget })
      expect(result).toMatchObject({ finalData: 1.1, error: null })
    })

    test('a result of another shape becomes the partial answer, in place of the collected data', async () => {
      const model = scriptedModel('emit_intermediate("a", 1)', 'emit_result({"best": 1})')
      const output = z.number()
      const result = await at.sg.solve('A number', { model, mode, output, maxRetries: 0 })
      expect(result).toMatchObject({ success: false, partial: { best: 1 }, record: { status: 'retries-spent' } })
    })

    test('rejects inputs and tools with the names of built-in globals', async () => {
      const model = scriptedModel('emit_result(1)')
      const solve = (options: object): Promise<unknown> => at.sg.solve('Anything', { model, mode, ...options })
      await expect(solve({ inputs: { collected: [] } })).rejects.toThrow(/inputs\.collected/)
      await expect(solve({ inputs: { state: 1 }, state: 0 })).rejects.toThrow(/inputs\.state/)
      const own = defineTool({ name: 'collected', description: '', input: z.object({}), execute: () => 1 })
      await expect(solve({ tools: [own] })).rejects.toThrow(/tools: collected/)
      expect(model.prompts).toEqual([])
    })
  })
})
