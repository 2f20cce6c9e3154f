import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type Sandglass } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const page = defineTool({
  name: 'page',
  description: 'A page of rows.',
  effect: 'read',
  input: z.object({ n: z.int() }),
  output: z.array(z.int()),
  execute: ({ n }) => [n, n * 10],
})
const tools = [page]
const TASK = 'All rows'

await onLocal((at) => {
  describe('a spent budget ends the run with the partial answer', () => {
    test('tokens: the last script runs, and no further one is requested', async () => {
      const model = scriptedModel({
        text: 'emit_intermediate("rows", page(1))\nemit_result({}["a"])',
        promptTokens: 90,
        completionTokens: 10,
      })
      const result = await at.sg.solve(TASK, { model, tools, budget: { tokens: 150 } })
      expect(model.prompts.length).toBe(2)
      expect(result).toMatchObject({
        success: false,
        error: 'the budget of 150 tokens is spent',
        partial: [{ label: 'rows', data: [1, 10] }],
        record: {
          status: 'budget-spent',
          budget: { tokens: 150, toolCalls: null, wallMs: null, cost: null },
          totalPromptTokens: 180,
          totalCompletionTokens: 20,
          attempts: [{ status: 'failed' }, { status: 'failed' }],
        },
      })
    })

    test('without a count from the model, a token is four characters', async () => {
      const model = scriptedModel('emit_result({}["a"])')
      const { record } = await at.sg.solve(TASK, { model, budget: { tokens: 50 } })
      expect(record.status).toBe('budget-spent')
      expect(record.totalPromptTokens).toBe(Math.ceil((model.prompts[0]?.length ?? 0) / 4))
      expect(record.totalCompletionTokens).toBe(5)
    })

    test('cost, per attempt and in total: no call follows the one that reaches it', async () => {
      const answer = { promptTokens: 1000, cachedPromptTokens: 600, completionTokens: 100, model: 'm-2026-01-31' }
      const model = scriptedModel({ text: 'emit_intermediate("rows", page(1))\nemit_result({}["a"])', ...answer })
      const pricing = { m: { input: 1, output: 10, cachedInput: 0.5 } }
      const each = 0.0017
      const result = await at.sg.solve(TASK, { model, tools, pricing, budget: { cost: 2 * each } })
      expect(model.prompts.length).toBe(2)
      expect(result).toMatchObject({
        error: 'the cost budget of 0.0034 is spent',
        partial: [{ label: 'rows', data: [1, 10] }],
        record: {
          status: 'budget-spent',
          budget: { cost: 2 * each },
          cost: 2 * each,
          attempts: [{ cost: each, generation: { cachedPromptTokens: 600 } }, { cost: each }],
        },
      })
    })

    test('cost: a model without a price ends the run, and missing prices are refused', async () => {
      const model = scriptedModel({ text: 'emit_result(1)', model: 'other' })
      const pricing = { m: { input: 1, output: 10 } }
      const unpriced = await at.sg.solve(TASK, { model, pricing })
      expect(unpriced).toMatchObject({ finalData: 1, record: { cost: null, attempts: [{ cost: null }] } })
      const bounded = await at.sg.solve(TASK, { model, pricing, budget: { cost: 1 } })
      expect(bounded).toMatchObject({
        error: 'budget.cost: pricing has no price for the model "other", so its cost cannot be bounded',
        record: { status: 'budget-spent' },
      })
      await expect(at.sg.solve(TASK, { model, budget: { cost: 1 } })).rejects.toThrow(/budget\.cost: needs the prices/)
    })

    test('tool calls: those beyond it fail in the script, and no further script begins', async () => {
      const model = scriptedModel('for n in range(5):\n    emit_intermediate("rows", page(n))\nemit_result(1)')
      const result = await at.sg.solve(TASK, { model, tools, budget: { toolCalls: 2 } })
      expect(model.prompts.length).toBe(1)
      expect(result).toMatchObject({
        success: false,
        error: 'the budget of 2 tool calls is spent',
        partial: [
          { label: 'rows', data: [0, 0] },
          { label: 'rows', data: [1, 10] },
        ],
        record: {
          status: 'budget-spent',
          totalToolCalls: 2,
          attempts: [{ status: 'failed' }],
        },
      })
      expect(result.record.attempts[0]?.error).toContain('this run may call tools 2 times')
    })

    test('tool calls count over attempts, and an answer within the budget is one', async () => {
      const model = scriptedModel('page(1)\nemit_result({}["a"])', 'emit_result(page(2))')
      const result = await at.sg.solve(TASK, { model, tools, budget: { toolCalls: 2 } })
      expect(result).toMatchObject({ success: true, finalData: [2, 20], record: { totalToolCalls: 2 } })
    })

    test('wall clock, while a script runs', async () => {
      const model = scriptedModel('emit_intermediate("rows", page(1))\nwhile page(1):\n    pass\nemit_result(1)')
      const result = await wallOf(at.sg, model, 1500)
      expect(result).toMatchObject({
        success: false,
        error: 'the budget of 1500 ms is spent',
        partial: [{ label: 'rows', data: [1, 10] }],
        record: { status: 'budget-spent', attempts: [{ status: 'cancelled' }] },
      })
      expect(result.record.durationMs).toBeLessThan(10_000)
    })

    test('wall clock, while the model thinks', async () => {
      const result = await wallOf(at.sg, () => new Promise(() => {}), 50)
      expect(result).toMatchObject({
        error: 'the budget of 50 ms is spent',
        partial: null,
        record: { status: 'budget-spent', attempts: [{ status: 'cancelled' }] },
      })
    })

    test('in steps, the collected data is the partial answer', async () => {
      let n = 0
      const model = scriptedModel(() => {
        n += 1
        return { text: `emit_intermediate("n", ${n})`, promptTokens: 50, completionTokens: 0 }
      })
      const result = await at.sg.solve(TASK, { model, mode: 'interactive', budget: { tokens: 100 } })
      expect(result).toMatchObject({
        success: false,
        error: 'the budget of 100 tokens is spent',
        partial: [
          { step: 1, label: 'n', data: 1 },
          { step: 2, label: 'n', data: 2 },
        ],
        record: { status: 'budget-spent' },
      })
    })

    test('one that is longer than any timer is not a limit', async () => {
      const model = scriptedModel('emit_result(1)')
      for (const wallMs of [2 ** 40, Number.POSITIVE_INFINITY]) {
        const result = await wallOf(at.sg, model, wallMs)
        expect(result.finalData).toBe(1)
      }
    })

    test('an invalid one is a TypeError', async () => {
      const model = scriptedModel('emit_result(1)')
      for (const budget of [{ tokens: 0 }, { wallMs: -1 }, { toolCalls: 1.5 }, { toolCalls: Number.NaN }]) {
        await expect(at.sg.solve(TASK, { model, budget })).rejects.toThrow(/^budget\./)
      }
      await expect(at.sg.solve(TASK, { model, budget: { token: 5 } as object })).rejects.toThrow(
        'budget: unknown option "token". Did you mean "tokens"?',
      )
    })
  })
})

function wallOf(sg: Sandglass, model: Parameters<Sandglass['solve']>[1]['model'], wallMs: number) {
  // More calls than a script makes in that time: 8,000 in a second where it is fast.
  return sg.solve(TASK, { model, tools, budget: { wallMs }, toolLimits: { maxCalls: 1_000_000 } })
}
