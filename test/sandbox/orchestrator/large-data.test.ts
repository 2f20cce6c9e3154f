import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, memoryStore } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { heldMemory } from '../../support/memory.ts'
import { onLocal } from '../tools/on-engine.ts'

const TASK = 'Anything'
const MiB = 2 ** 20

await onLocal((at) => {
  describe('large data of a script does not make a journal, error or prompt large (OR-06)', () => {
    test('arguments: the journal keeps their length', async () => {
      let taken = 0
      const take = defineTool({
        name: 'take',
        description: 'Takes a list.',
        input: z.object({ data: z.array(z.int()) }),
        execute: ({ data }) => (taken += data.length),
      })
      const journal = memoryStore()
      const before = heldMemory()
      const model = scriptedModel('for _ in range(12):\n    take([0] * 130_000)\nemit_result(1)')
      const { record } = await at.sg.solve(TASK, { model, tools: [take], journal })
      expect([record.status, taken]).toEqual(['completed', 12 * 130_000])
      const calls = record.attempts[0]?.toolCalls ?? []
      expect(calls.length).toBe(12)
      expect(JSON.stringify(calls[0]?.args)).toBe('{"…":"about 254 KiB of JSON left out"}')
      expect(JSON.stringify([...(await journal.read(record.runId))]).length).toBeLessThan(100_000)
      expect(heldMemory() - before).toBeLessThan(16 * MiB)
    })

    test('a result that does not match: its first problem is the error', async () => {
      const row = z.object(Object.fromEntries(Array.from({ length: 10 }, (_, n) => [`f${n}`, z.string()] as const)))
      const model = scriptedModel('emit_result([{}] * 130_000)', 'emit_result([])')
      const { record, finalData } = await at.sg.solve(TASK, { model, output: z.array(row) })
      expect([record.status, finalData]).toEqual(['completed', []])
      expect(record.attempts[0]?.error).toMatch(/^the result does not match `output`: result\.0\.f0: /)
      expect(record.attempts[0]?.error?.length).toBeLessThan(2000)
      expect((model.prompts[1]?.length ?? 0) - (model.prompts[0]?.length ?? 0)).toBeLessThan(10_000)
      expect(JSON.stringify(record).length).toBeLessThan(MiB)
    })
  })
})
