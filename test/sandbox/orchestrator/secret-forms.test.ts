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
  })
})
