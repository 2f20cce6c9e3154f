import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, logTo, memoryStore, recordOf, withTrace } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const price = defineTool({
  name: 'price',
  description: 'Unit price in EUR.',
  effect: 'read',
  input: z.object({ sku: z.string() }),
  output: z.number(),
  execute: ({ sku }) => ({ a: 2, b: 3 })[sku] ?? 0,
})
const tools = [price]

await onLocal((at) => {
  describe('an answer without a fence that is Python is the whole script (OR-12)', () => {
    const charged: unknown[] = []
    const charge = defineTool({
      name: 'charge',
      description: 'Charges an amount.',
      effect: 'write',
      input: z.object({ amount: z.number() }),
      execute: ({ amount }) => charged.push(amount),
    })

    test.each(['off', 'strict'] as const)('under the policy %s', async (policy) => {
      const answer = "{k: charge(amount=k) for k in [1]}\nemit_result('charged')"
      const model = scriptedModel(`${answer}\n`, 'emit_result(2)')
      const done = await at.sg.solve('Charge', { model, tools: [charge], policy })
      expect(done).toMatchObject({ success: true, finalData: 'charged', record: { totalToolCalls: 1 } })
      expect(done.record.attempts.map(({ script }) => script)).toEqual([answer])

      const failing = scriptedModel('1/0\nemit_result(1)', 'This gives two:\n\nemit_result(2)')
      const retried = await at.sg.solve('Anything', { model: failing, policy })
      expect(retried).toMatchObject({ success: true, finalData: 2 })
      expect(retried.record.attempts.map(({ script, error }) => [script, error])).toEqual([
        ['1/0\nemit_result(1)', 'ZeroDivisionError: division by zero'],
        ['emit_result(2)', null],
      ])
    })

    test('an answer in words or values is not a script', async () => {
      const model = scriptedModel('Sorry', '{"answer": 5}', 'emit_result(5)')
      const { record } = await at.sg.solve('Anything', { model })
      expect(record.attempts.map(({ status, script }) => [status, script])).toEqual([
        ['no-script', null],
        ['no-script', null],
        ['completed', 'emit_result(5)'],
      ])
    })
  })

  describe('PLAN mode', () => {
    test('one script, one answer; the record has its cost (OR-01, OR-02, OR-06)', async () => {
      const model = scriptedModel({
        text: 'Here you are:\n```python\nemit_result(sum(price(sku=s) for s in ["a", "b"]))\n```',
        promptTokens: 150,
        completionTokens: 25,
        model: 'coder-1',
        latencyMs: 12,
      })
      const result = await at.sg.solve('What do a and b cost together?', { model, tools })
      expect(result).toMatchObject({ success: true, finalData: 5, error: null, partial: null })
      expect(result.record).toMatchObject({
        task: 'What do a and b cost together?',
        mode: 'plan',
        status: 'completed',
        policy: 'strict',
        tools: ['price'],
        maxRetries: 3,
        steps: [],
        models: ['coder-1'],
        totalPromptTokens: 150,
        totalCompletionTokens: 25,
        totalToolCalls: 2,
        attempts: [
          {
            number: 1,
            status: 'completed',
            error: null,
            script: 'emit_result(sum(price(sku=s) for s in ["a", "b"]))',
            generation: { model: 'coder-1', promptTokens: 150, completionTokens: 25, latencyMs: 12, answer: null },
            toolCalls: [
              { key: 'L1#1', line: 1, name: 'price', effect: 'read', args: { sku: 'a' }, ok: true, resultJson: '2' },
              { key: 'L1#2', line: 1, name: 'price', effect: 'read', args: { sku: 'b' }, ok: true, resultJson: '3' },
            ],
            sandbox: { engine: at.engine },
          },
        ],
      })
      expect(model.prompts[0]).toContain('def price(sku: str) -> float')
      expect(model.prompts[0]).toContain('What do a and b cost together?')
    })

    test('a mistake that the checker finds is reported precisely and costs no lease (OR-02, OR-05)', async () => {
      const model = scriptedModel('total = price(sku="a") + prise(sku="b")\nemit_result(total)', (prompt) => {
        expect(prompt).toContain('prise')
        expect(prompt).toContain('line 1')
        return 'emit_result(price(sku="a") + price(sku="b"))'
      })
      const before = at.sg.stats()
      const result = await at.sg.solve('Add up', { model, tools })
      const after = at.sg.stats()
      expect(result.finalData).toBe(5)
      expect(result.record.attempts.map(({ status }) => status)).toEqual(['rejected', 'completed'])
      expect(result.record.attempts[0]?.violations).toMatchObject([{ code: 'unknown_name', line: 1 }])
      expect(after.hits + after.misses - before.hits - before.misses).toBe(1)
    })

    test('an error at run time is reported with its line and a hint (OR-02, OR-12)', async () => {
      const model = scriptedModel('d = {"a": 1}\nemit_result(d["b"])', (prompt) => {
        expect(prompt).toContain("KeyError: 'b'")
        expect(prompt).toContain('Line 2 of the script is: emit_result(d["b"])')
        expect(prompt).toContain('Hint:')
        return 'emit_result(1)'
      })
      const result = await at.sg.solve('Anything', { model })
      expect(result.record.attempts.map(({ status }) => status)).toEqual(['failed', 'completed'])
      expect(result.record.lastTraceback()).toContain('File "<script>", line 2')
    })

    test('the feedback lists the calls that took effect before a failure, so that the model does not repeat them', async () => {
      const paid: string[] = []
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        effect: 'write',
        input: z.object({ to: z.string() }),
        execute: ({ to }) => paid.push(to),
      })
      const model = scriptedModel('pay("Ann")\nprice(sku="a")\nemit_result(1 / 0)', 'emit_result([][1])', (prompt) => {
        expect(prompt).toContain('These calls already took effect')
        expect(prompt.match(/^- pay: .*$/gm)).toEqual(['- pay: {"to":"Ann"}'])
        return 'pay("Bob")\nemit_result("done")'
      })
      const result = await at.sg.solve('Pay Ann and Bob', { model, tools: [pay, price] })
      expect([result.finalData, paid]).toEqual(['done', ['Ann', 'Bob']])
    })

    test('maxRetries counts attempts after the first; then the last error is the answer (OR-02, OR-08)', async () => {
      const model = scriptedModel('emit_result(1 / 0)', 'emit_result([][3])', 'emit_result(int("x"))')
      const result = await at.sg.solve('Anything', { model, maxRetries: 2 })
      expect(model.prompts.length).toBe(3)
      expect(result).toMatchObject({ success: false, finalData: null, record: { status: 'retries-spent' } })
      expect(result.error).toContain('ValueError: invalid literal')
    })

    test('an answer of another shape is feedback, and becomes the partial answer', async () => {
      const output = z.object({ total: z.number() })
      const model = scriptedModel('emit_result({"total": "5"})', (prompt) => {
        expect(prompt).toContain('does not match `output`')
        return 'emit_result({"total": 5})'
      })
      const result = await at.sg.solve('Total', { model, output })
      expect(result.finalData).toEqual({ total: 5 })
      const never = await at.sg.solve('Total', { model: scriptedModel('emit_result({"total": "5"})'), output })
      expect(never).toMatchObject({ success: false, partial: { total: '5' } })
    })

    test('a record that is read back from the journal is the same (OR-06)', async () => {
      const journal = memoryStore()
      const model = scriptedModel('emit_result(1 / 0)', 'emit_result(2)')
      const { record } = await at.sg.solve('Anything', { model, journal })
      const again = recordOf(await journal.read(record.runId))
      expect(JSON.parse(JSON.stringify(again))).toEqual(JSON.parse(JSON.stringify(record)))
      expect(again.lastTraceback()).toBe(record.lastTraceback())
    })

    test('logs carry the trace of the call, and a model of its own writes the scripts (OR-09, OR-10)', async () => {
      const lines: Record<string, unknown>[] = []
      const log = (fields: object): void => void lines.push({ ...fields })
      using _ = logTo({ info: log, warn: log })
      const coder = scriptedModel(
        { text: 'emit_result(1 / 0)', model: 'coder' },
        { text: 'emit_result(2)', model: 'coder' },
      )
      // The agent's own model: it calls the tool and is not asked for a script.
      const agent = async (question: string): Promise<string> => {
        const { finalData, record } = await at.sg.solve(question, { model: coder })
        return `${String(finalData)} by ${record.models.join(', ')}`
      }
      expect(await withTrace({ traceId: 'turn-7' }, () => agent('Two?'))).toBe('2 by coder')
      expect(lines.map(({ event, trace_id: trace, ok }) => [event, trace, ok])).toEqual([
        ['script_generated', 'turn-7', true],
        ['script_executed', 'turn-7', false],
        ['script_generated', 'turn-7', true],
        ['script_executed', 'turn-7', true],
        ['run_ended', 'turn-7', true],
      ])
    })
  })
})
