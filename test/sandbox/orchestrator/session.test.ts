import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineTool } from '../../../src/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { endSessionProcess, ENDS_LATER, PROCESS_ENDED } from '../../support/end-of-session-process.ts'
import { UNCERTAIN_CALLS, uncertainTools } from '../../support/uncertain-writes.ts'
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
const MiB = 1024 * 1024
const mode = 'interactive'
const session = true

await onLocal((at) => {
  describe('INTERACTIVE mode in a session', () => {
    test('variables stay from step to step, and prompts say what is there and what was shown', async () => {
      const model = scriptedModel(
        (prompt) => {
          expect(prompt).toContain('Variables, functions and imports stay from step to step')
          expect(prompt).not.toContain('Variables are gone after the step')
          expect(prompt).not.toContain('Variables of the session')
          return 'found = rates()\nnames = [1, 2, 3]\nclass One:\n    shape = ()\none = One()\nprint("two")\nlen(names)'
        },
        (prompt) => {
          expect(prompt).toContain('step 1, "output": "two\\n3"')
          expect(prompt).toMatch(
            /Variables of the session.*\n- found: Record\n- names: list, 3\n- One: type\n- one: \S*One\n/,
          )
          return 'usd = found["USD"] * 2'
        },
        (prompt) => {
          expect(prompt).toContain('- usd: float')
          expect(prompt).not.toContain('- collected')
          return 'emit_result(usd)'
        },
      )
      const result = await at.sg.solve('Twice the rate', { model, tools, mode, session })
      expect(result).toMatchObject({ success: true, finalData: 2.2, record: { totalToolCalls: 1 } })
      const cells = result.record.steps.flatMap(({ attempts }) => attempts.map(({ cell }) => cell))
      expect(cells).toEqual([1, 2, 3].map((number) => ({ number, state: 'kept' })))
    })

    test.each([
      ['keep', 'Variables are as the script left them.', [1, 2]],
      ['rollback', 'Variables are as they were before the script.', [1]],
    ] as const)('with onError %s, a failed step says what became of the variables', async (onError, said, data) => {
      const model = scriptedModel('a = [1]', 'a.append(2)\n1 / 0', (prompt) => {
        expect(prompt).toContain(said)
        return 'emit_result(a)'
      })
      const result = await at.sg.solve('Anything', { model, mode, session, onError })
      expect(result.finalData).toEqual(data)
    })

    test('a step over its time goes back to the state before, and files of the workspace stay', async () => {
      await using workspace = await at.sg.workspace()
      const model = scriptedModel('a = 1', 'a = 2\nopen("x", "w").write("x")\nwhile True: pass', (prompt) => {
        expect(prompt).toContain(
          'What it wrote to files stays, except what it appended to files that were open before it.',
        )
        return 'emit_result([a, open("x").read()])'
      })
      const limits = { executionTimeoutSec: 4 }
      const result = await at.sg.solve('Anything', { model, mode, session, workspace, limits, policy: 'standard' })
      expect(result.finalData).toEqual([1, 'x'])
      expect(result.record.steps[1]?.attempts.map(({ cell }) => cell?.state)).toEqual(['rolled-back', 'kept'])
      expect(await workspace.run('emit_result(1)')).toMatchObject({ finalData: 1 })
    })

    test('a task that repeats itself and has only variables is asked for the answer from them', async () => {
      const model = scriptedModel(
        'total = 42\nnames = ["a", "b"]',
        'n = 1 / 0',
        'n = 1 / 0',
        (prompt) => {
          expect(prompt).toContain('outputs the answer from the data and the variables below')
          expect(prompt).toMatch(/Variables of the session.*\n- total: int\n- names: list, 2\n/)
          expect(prompt).toContain('Do NOT fetch again what is shown above or held by a variable.')
          return 'n = rates()'
        },
        (prompt) => {
          expect(prompt).toContain(
            'rates cannot be called. Use the variable collected and the variables of the session.',
          )
          return 'emit_result(total)'
        },
      )
      const result = await at.sg.solve('Anything', { model, tools, mode, session, maxRepetitions: 1, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: 42 })
      expect(result.record.steps.map(({ forceFinish }) => forceFinish)).toEqual([false, false, true])
    })

    test('a task that has spent its tool calls and has only variables is asked for the answer from them', async () => {
      const model = scriptedModel('usd = rates()["USD"]', (prompt) => {
        expect(prompt).toContain('- usd: float')
        expect(prompt).toContain('There are no tools in the final step')
        return 'emit_result(usd)'
      })
      const result = await at.sg.solve('Anything', { model, tools, mode, session, budget: { toolCalls: 1 } })
      expect(result).toMatchObject({ error: null, finalData: 1.1 })
    })

    test('a module and a function are no data to answer from', async () => {
      const model = scriptedModel('import math\ndef twice(n): return 2 * n\nclass One: pass', 'n = 1 / 0', 'n = 1 / 0')
      const result = await at.sg.solve('Anything', { model, mode, session, maxRepetitions: 1, maxRetries: 1 })
      expect(result).toMatchObject({ success: false, record: { status: 'retries-spent' } })
    })

    test('the feedback on a step says which writes failed or were not answered, and may have had an effect', async () => {
      const model = scriptedModel(UNCERTAIN_CALLS, (prompt) => {
        const told = prompt.slice(prompt.indexOf('These calls already took effect'))
        expect(told).toMatch(
          /^These.*\n- pay: {"to":"works"}\nThese calls failed or were not answered, .* may have had an effect/,
        )
        expect(told.match(/^- pay: .*$/gm)).toEqual(
          ['works', 'fails', 'hangs', 'waits'].map((to) => `- pay: {"to":"${to}"}`),
        )
        return 'emit_result(1)'
      })
      const result = await at.sg.solve('Anything', { model, tools: uncertainTools(), mode, session, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: 1 })
    })

    test.each([
      ['a step that succeeds', 'n = 1', `step 2, "session": "${PROCESS_ENDED}"`],
      ['a step that fails', 'n = 1 / 0', `Variables are as the script left them. Before the script: ${PROCESS_ENDED}.`],
    ])('%s after the process of the session has ended tells so in the next prompt', async (_, script, said) => {
      await using workspace = await at.sg.workspace()
      const model = scriptedModel(
        ENDS_LATER,
        async () => {
          await endSessionProcess(workspace)
          return script
        },
        (prompt) => {
          expect(prompt).toContain(said)
          return 'emit_result(1)'
        },
      )
      const result = await at.sg.solve('Anything', { model, mode, session, workspace, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: 1 })
    })

    test.each([
      ['before a prompt', 'No script.'],
      ['before a script', 'n = big'],
    ])('a session that is lost %s is told once, with the reason, and an empty one begins', async (_, answer) => {
      await using workspace = await at.sg.workspace({ limits: { memoryBytes: 256 * MiB } })
      const told =
        /the session has ended: all variables are lost, and the next script starts in a new, empty session \(.*\)/gi
      const model = scriptedModel(
        // A state of more than 45 % of the memory has no checkpoint.
        `${ENDS_LATER}\nbig = b"x" * (130 << 20)`,
        async () => {
          await endSessionProcess(workspace)
          return answer
        },
        (prompt) => {
          expect(prompt.match(told)).toEqual([expect.stringContaining('memory limit')])
          expect(prompt).not.toContain('- big: bytes')
          return 'small = 1'
        },
        (prompt) => {
          expect(prompt.match(told)?.length ?? 0).toBeLessThanOrEqual(1)
          expect(prompt).toContain('- small: int')
          return 'emit_result("big" in globals())'
        },
      )
      const result = await at.sg.solve('Anything', { model, mode, session, workspace, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: false })
    })

    test('each step has the secrets of the task, and variables that hold one are redacted', async () => {
      const model = scriptedModel('import os\nkey = os.environ["KEY"]\nkey', (prompt) => {
        expect(prompt).toContain('[redacted:KEY]')
        expect(prompt).not.toContain('a-secret-value')
        return 'import os\nemit_result(os.environ["KEY"] == key)'
      })
      const secrets = { KEY: 'a-secret-value' }
      const result = await at.sg.solve('Anything', { model, mode, session, secrets, policy: 'off' })
      expect(result).toMatchObject({ error: null, finalData: true })
    })

    test('what a session cannot have is refused before the model is asked', async () => {
      const model = scriptedModel('emit_result(1)')
      const refused = (options: object): Promise<unknown> => at.sg.solve('Anything', { model, session, ...options })
      await expect(refused({})).rejects.toThrow("session: requires `mode: 'interactive'`")
      await expect(refused({ mode, state: 1 })).rejects.toThrow('state: cannot be combined with session')
      await expect(refused({ mode, onError: 'x' })).rejects.toThrow('onError')
      expect(model.prompts).toEqual([])
    })
  })
})
