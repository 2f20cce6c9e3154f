import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, logTo, memoryStore, recordOf, withTrace } from '../../src/index.ts'
import { scriptedModel } from '../../src/testing/index.ts'
import { onEachEngine } from '../tools/each-engine.ts'

const price = defineTool({
  name: 'price',
  description: 'Unit price in EUR.',
  effect: 'read',
  input: z.object({ sku: z.string() }),
  output: z.number(),
  execute: ({ sku }) => ({ a: 2, b: 3 })[sku] ?? 0,
})
const tools = [price]

onEachEngine((at) => {
  describe('PLAN mode', () => {
    test('one script, one answer; the record says what it took (OR-01, OR-02, OR-06)', async () => {
      const model = scriptedModel({
        text: 'Here you are:\n```python\nemit_result(sum(price(sku=s) for s in ["a", "b"]))\n```',
        promptTokens: 150,
        completionTokens: 25,
        model: 'coder-1',
        latencyMs: 12,
      })
      const result = await at.sg.solve('What do a and b cost together?', { model: model.call, tools })
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

    test('a mistake that the checker finds is told precisely and costs no lease (OR-02, OR-05)', async () => {
      const model = scriptedModel('total = price(sku="a") + prise(sku="b")\nemit_result(total)', (prompt) => {
        expect(prompt).toContain('prise')
        expect(prompt).toContain('line 1')
        return 'emit_result(price(sku="a") + price(sku="b"))'
      })
      const before = at.sg.stats()
      const result = await at.sg.solve('Add up', { model: model.call, tools })
      const after = at.sg.stats()
      expect(result.finalData).toBe(5)
      expect(result.record.attempts.map(({ status }) => status)).toEqual(['rejected', 'completed'])
      expect(result.record.attempts[0]?.violations).toMatchObject([{ code: 'unknown_name', line: 1 }])
      expect(after.hits + after.misses - before.hits - before.misses).toBe(1)
    })

    test('an error at run time is told with its line and a hint (OR-02, OR-12)', async () => {
      const model = scriptedModel('d = {"a": 1}\nemit_result(d["b"])', (prompt) => {
        expect(prompt).toContain("KeyError: 'b'")
        expect(prompt).toContain('Line 2 of the script is: emit_result(d["b"])')
        expect(prompt).toContain('Hint:')
        return 'emit_result(1)'
      })
      const result = await at.sg.solve('Anything', { model: model.call })
      expect(result.record.attempts.map(({ status }) => status)).toEqual(['failed', 'completed'])
      expect(result.record.lastTraceback()).toContain('File "<script>", line 2')
    })

    test('what took effect before a failure is told, so that it is not done again', async () => {
      const paid: string[] = []
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        effect: 'write',
        input: z.object({ to: z.string() }),
        execute: ({ to }) => paid.push(to),
      })
      const model = scriptedModel('pay("Ann")\nprice(sku="a")\nemit_result(1 / 0)', 'emit_result([][1])', (prompt) => {
        expect(prompt).toContain('Calls that took effect already')
        expect(prompt.match(/^- pay: .*$/gm)).toEqual(['- pay: {"to":"Ann"}'])
        return 'pay("Bob")\nemit_result("done")'
      })
      const result = await at.sg.solve('Pay Ann and Bob', { model: model.call, tools: [pay, price] })
      expect([result.finalData, paid]).toEqual(['done', ['Ann', 'Bob']])
    })

    test('maxRetries counts what follows the first attempt; then the last error is the answer (OR-02, OR-08)', async () => {
      const model = scriptedModel('emit_result(1 / 0)', 'emit_result([][3])', 'emit_result(int("x"))')
      const result = await at.sg.solve('Anything', { model: model.call, maxRetries: 2 })
      expect(model.prompts.length).toBe(3)
      expect(result).toMatchObject({ success: false, finalData: null, record: { status: 'retries-spent' } })
      expect(result.error).toContain('ValueError: invalid literal')
    })

    test('an answer of another shape is feedback, and what there was is the partial answer', async () => {
      const output = z.object({ total: z.number() })
      const model = scriptedModel('emit_result({"total": "5"})', (prompt) => {
        expect(prompt).toContain('does not match `output`')
        return 'emit_result({"total": 5})'
      })
      const result = await at.sg.solve('Total', { model: model.call, output })
      expect(result.finalData).toEqual({ total: 5 })
      const never = await at.sg.solve('Total', { model: scriptedModel('emit_result({"total": "5"})').call, output })
      expect(never).toMatchObject({ success: false, partial: { total: '5' } })
    })

    test('the journal is the record: read back, it says the same (OR-06)', async () => {
      const journal = memoryStore()
      const model = scriptedModel('emit_result(1 / 0)', 'emit_result(2)')
      const { record } = await at.sg.solve('Anything', { model: model.call, journal })
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
      // Stands for the agent's own model: it calls the other one's work, and is asked for no script.
      const agent = async (question: string): Promise<string> => {
        const { finalData, record } = await at.sg.solve(question, { model: coder.call })
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
