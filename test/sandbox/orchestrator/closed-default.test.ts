import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import {
  defineTool,
  type JournalEvent,
  type JournalStore,
  memoryStore,
  type SolveOptions,
  ToolCallError,
  withTrace,
} from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { onLocal } from '../tools/on-engine.ts'

const KEY = 'sk-live-ABCDEFGHIJKL'

await onLocal((at) => {
  describe('a safe default', () => {
    test('a script whose record cannot be kept does not run', async () => {
      let calls = 0
      const write = defineTool({
        name: 'pay',
        description: '',
        effect: 'write',
        input: z.object({}),
        execute: () => (calls += 1),
      })
      const full = ({ type }: JournalEvent): void => {
        if (type === 'prompt_written') throw new Error('disk full')
      }
      for (const append of [full, async (event: JournalEvent) => full(event)]) {
        const journal: JournalStore = { ...memoryStore(), append }
        const result = await at.sg.solve('Pay', { model: async () => 'emit_result(pay())', tools: [write], journal })
        expect(result).toMatchObject({
          error: 'the journal cannot be written: disk full',
          record: { status: 'infrastructure' },
        })
      }
      expect(calls).toBe(0)
    })

    test('a store that never answers delays neither a cancellation nor a time budget', async () => {
      const journal: JournalStore = { ...memoryStore(), append: () => new Promise(() => {}) }
      const result = await at.sg.solve('Anything', {
        model: async () => 'emit_result(1)',
        journal,
        budget: { wallMs: 100 },
      })
      expect(result).toMatchObject({ success: false, record: { status: 'budget-spent' } })
    })

    test('a schema that never answers is cancelled with the run', async () => {
      const validate = (): Promise<never> => new Promise(() => {})
      const output = { '~standard': { version: 1, vendor: 'test', validate } } as const
      const model = async (): Promise<string> => 'emit_result(1)'
      const result = await at.sg.solve('Anything', { model, output, budget: { wallMs: 500 } })
      expect(result).toMatchObject({ success: false, partial: 1, record: { status: 'budget-spent' } })
    })

    test('a secret reaches neither the model nor the journal, also where a text is cut within it', async () => {
      const journal = memoryStore()
      const long = 'x'.repeat(16 * 1024 - 12)
      const tools = [
        defineTool({
          name: 'fails',
          description: '',
          input: z.object({}),
          execute() {
            throw new ToolCallError('denied', `401 for key ${KEY}`)
          },
        }),
        defineTool({ name: 'tells', description: '', input: z.object({}), execute: () => long + KEY }),
      ]
      const model = scriptedModel(
        `${'I can not. '.repeat(181)}${KEY}`,
        'tells()\nfails()\nemit_result(1)',
        'emit_result(tells()[-20:])',
      )
      const options = { model, tools, journal, hide: { KEY }, keepPrompts: true }
      const { record } = await at.sg.solve('Anything', options)
      expect(record.attempts.map(({ status }) => status)).toEqual(['no-script', 'failed', 'completed'])
      const everything = JSON.stringify([model.prompts, await journal.read(record.runId), record])
      expect(everything).not.toContain(KEY.slice(0, 8))
      expect(everything).toContain('[redacted:KEY]')
    })

    test('limits of the sandbox are enforced', async () => {
      const model = scriptedModel('emit_result(len(bytearray(300 * 1024 * 1024)))')
      const limits = { memoryBytes: 128 * 1024 * 1024 }
      const result = await at.sg.solve('Anything', { model, limits, maxRetries: 0 })
      expect(result.success).toBe(false)
      expect(result.error).toMatch(/memory/i)
    })

    test('wrong options are reported before the model is called', async () => {
      const model = scriptedModel('emit_result(1)')
      const wrong: [object, RegExp][] = [
        [{ policy: 'strikt' }, /policy: no policy "strikt".*strict/],
        [{ mode: 'PLAN' }, /mode/],
        [{ limits: { executionTimeoutSec: -1 } }, /executionTimeoutSec/],
        [{ toolLimits: { maxCalls: -1 } }, /toolLimits\.maxCalls/],
        [{ inputs: { 'not-id': 1 } }, /not-id/],
        [{ inputs: { big: 1n } }, /big/],
        [{ secrets: { 'A=B': 'x' } }, /A=B/],
        [{ hide: { KEY: undefined } }, /hide\.KEY/],
        [{ budget: { token: 1 } }, /token/],
        [{ maxRetry: 1 }, /maxRetry/],
      ]
      for (const [options, message] of wrong) {
        const given = { model, ...options } as SolveOptions
        await expect(at.sg.solve('Anything', given)).rejects.toThrow(message)
      }
      expect(model.prompts).toEqual([])
    })

    test('a preamble that is not Python ends the run: no script can fix it', async () => {
      const model = scriptedModel('emit_result(1)')
      const result = await at.sg.solve('Anything', { model, preamble: 'import (' })
      expect(model.prompts.length).toBe(1)
      expect(result).toMatchObject({ success: false, record: { status: 'infrastructure' } })
      expect(result.error).toContain('preamble')
    })

    test('data of a schema that JSON cannot express is still an answer', async () => {
      const strange = Object.defineProperty({ size: 1n }, Symbol.for('nodejs.util.inspect.custom'), {
        value: () => {
          throw new Error('inspect broke')
        },
      })
      const output = z.number().transform(() => strange)
      const result = await at.sg.solve('Anything', { model: async () => 'emit_result(1)', output })
      expect([result.success, result.finalData === strange, result.record.finalData]).toEqual([
        true,
        true,
        '{ size: 1n }',
      ])
    })

    test('a stream has the trace of its call, reports wrong options at once, and leaves onEvent its events', async () => {
      const model = async (): Promise<string> => 'emit_result(1)'
      const heard: string[] = []
      const options = { model, onEvent: ({ type }: JournalEvent) => void heard.push(type) }
      const stream = withTrace({ traceId: 't-1' }, () => at.sg.solveStream('Anything', options))
      const seen: string[] = []
      const traces: (string | null)[] = []
      for await (const each of stream) {
        if (each.type === 'event') seen.push(each.event.type)
        else if (each.type === 'result') traces.push(each.result.record.traceId)
      }
      expect(traces).toEqual(['t-1'])
      expect(heard).toEqual(seen)
      expect(seen.at(-1)).toBe('run_ended')
      expect(() => at.sg.solveStream('', { model })).toThrow(/task/)
    })

    test('the modules that the prompt lists can be imported under the same policy', async () => {
      const model = scriptedModel('emit_result(1)')
      await at.sg.solve('Anything', { model })
      const [, list = ''] = /Modules that you can import: (.*)\./.exec(model.prompts[0] ?? '') ?? []
      const names = list.split(', ')
      expect(names).toContain('statistics')
      const script = names.map((name) => `import ${name}\n${name}`).join('\n')
      expect(await at.sg.check(script, { policy: 'strict' })).toEqual({ ok: true, violations: [] })
    })
  })
})
