import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool, type JournalEvent, memoryStore } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { partsOf, randomSecrets } from '../../support/random-secrets.ts'
import { onLocal } from '../tools/on-engine.ts'

const WRITERS = readFileSync(join(import.meta.dirname, '../../../scripts/docs/python-writers.py'), 'utf8')
const [, DEFINITIONS = ''] = /^([^]*)\nif __name__/.exec(WRITERS) ?? []

/** Writes the secret in each form to every output of a script. */
const SCRIPT = `import os
for name, write in WRITERS.items():
    text = write(os.environ['K'])
    print(text)
    print(text, file=sys.stderr)
    emit_log(text)
    emit_intermediate(text[:1000], {text: [text]})
    try:
        put(text=text)
    except ToolError as error:
        emit_log(str(error))
`

await onLocal((at) => {
  describe('a secret that a script writes in each form of the standard library', () => {
    test('is in no sink: result, events, journal, record, prompts (OR-06)', async () => {
      const [secret = '', hidden = ''] = randomSecrets(2, 17)
      const events: JournalEvent[] = []
      const journal = memoryStore()
      const model = scriptedModel(
        `${SCRIPT}raise KeyError(os.environ['K'], {'k': os.environ['K']})`,
        `${SCRIPT}emit_result({n: w(os.environ['K']) for n, w in WRITERS.items()} | {'hidden': key()})`,
      )
      const tools = [
        defineTool({
          name: 'put',
          description: 'Takes a text',
          input: z.object({ text: z.string() }),
          execute: ({ text }) => {
            throw new Error(`cannot put ${JSON.stringify(text)}`)
          },
        }),
        defineTool({ name: 'key', description: 'A key', input: z.object({}), execute: () => `<${hidden}>` }),
      ]
      const result = await at.sg.solve('Write', {
        model,
        tools,
        journal,
        policy: 'off',
        preamble: DEFINITIONS,
        secrets: { K: secret },
        hide: { H: hidden },
        limits: { maxOutputBytes: 8 * 1024 * 1024 },
        onEvent: (event) => events.push(event),
      })
      expect(result.error).toBeNull()
      expect(result.finalData).toMatchObject({ 'repr(v)': "'[redacted:K]'", hidden: '<[redacted:H]>' })
      const stored = await journal.read(result.record.runId)
      const bytes = Buffer.from(secret)
      const parts = [...partsOf(secret), ...partsOf(hidden), bytes.toString('hex').slice(8, 24)]
      for (const offset of [0, 1, 2]) parts.push(bytes.subarray(offset + 3, offset + 18).toString('base64'))
      for (const sink of [result, events, stored, model.prompts]) {
        const text = JSON.stringify(sink)
        expect(text).toContain('[redacted:K]')
        expect(parts.filter((part) => text.includes(part))).toEqual([])
      }
    })

    test('leaves no part where a prompt cuts a line, an argument or the state (OR-06)', async () => {
      const key = 'sk-0123456789abcdefghij'
      const tool = defineTool({
        name: 'put',
        description: 'Takes a text',
        effect: 'write',
        input: z.object({ text: z.string() }),
        execute: () => 1,
      })
      const starts = [170, 176, 182, 188, 194, 985, 991, 997, 1990, 1996]
      const scripts = starts.map((start) => {
        const line = `x = "${'a'.repeat(start - 5)}${key}${'b'.repeat(3000)}"; {}[${start}]`
        return `put(text="${'a'.repeat(start - 40)}${key}${'b'.repeat(900)}")\n${line}`
      })
      const [first = '', ...others] = scripts
      const model = scriptedModel(first, ...others, 'emit_result(1)')
      const options = { model, tools: [tool], policy: 'off', hide: { K: key }, maxRetries: starts.length } as const
      expect(await at.sg.solve('Write', options)).toMatchObject({ success: true })
      const stepping = scriptedModel('emit_intermediate("found", 1)', 'emit_result(1)')
      const state = 'a'.repeat(290) + key + 'b'.repeat(900)
      await at.sg.solve('Write', { ...options, mode: 'interactive', model: stepping, state })
      expect(stepping.prompts[1]).toContain('Its value is now')
      expect(JSON.stringify([model.prompts, stepping.prompts])).not.toContain('sk-0')
      expect(model.prompts).toHaveLength(scripts.length + 1)
    })
  })
})
