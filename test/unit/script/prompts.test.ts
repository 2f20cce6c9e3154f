import { describe, expect, test } from 'vitest'
import { DEFAULT_PROMPTS, ScriptGenerator } from '../../../src/script/index.ts'
import { makeFailure, fullGenerator, stepView } from './prompt-case.ts'

const TASK = 'What did the customer spend?'

/** All five prompts with every section, concatenated. */
function everyPrompt(): string {
  const generator = fullGenerator({ keepsState: true })
  const rejected = makeFailure({
    traceback: null,
    error: 'the script was rejected before it ran',
    stdout: '',
    script: 'emit_resutl(rate("EUR"))',
    violations: [
      {
        code: 'unknown_name',
        line: 1,
        column: 0,
        message: "'emit_resutl' is not defined",
        hint: 'Did you mean emit_result(data=None)?',
      },
      {
        code: 'argument_type',
        line: 1,
        column: 17,
        message: "to of rate() has to be one of 'USD', 'GBP', not 'EUR'",
        hint: "Give one of 'USD', 'GBP' in place of 'EUR'.",
      },
    ],
  })
  const calls = makeFailure({
    failedCalls: [{ name: 'orders', code: 'tool_failed', message: 'no customer C-1' }],
    repetition: 'This error is the same as the previous one: the last change did not fix it. Try another approach.',
    stderr: 'a warning\n',
  })
  const prompts = {
    first: generator.firstPrompt(TASK),
    'retry, after a run': generator.retryPrompt(TASK, calls),
    'retry, after a check': generator.retryPrompt(TASK, rejected),
    step: generator.stepPrompt(TASK, stepView({ state: { page: 3 } })),
    'step, the first': generator.stepPrompt(TASK, stepView({ step: 1, collected: [] })),
    'step, again': generator.stepPrompt(TASK, stepView({ failure: makeFailure() })),
    finish: generator.stepPrompt(TASK, stepView({ forceFinish: true })),
    'finish, again': generator.stepPrompt(TASK, stepView({ forceFinish: true, failure: makeFailure() })),
  }
  return Object.entries(prompts)
    .map(([name, text]) => `######## ${name}\n\n${text}\n`)
    .join('\n')
}

describe('prompts (OR-12)', () => {
  test('have exactly this text', async () => {
    await expect(everyPrompt()).toMatchFileSnapshot('./prompts.snapshot.txt')
  })

  test('prompts of a task have the same beginning, so that the provider can cache it', () => {
    const generator = fullGenerator({ keepsState: true })
    const first = generator.firstPrompt(TASK)
    const given = first.slice(0, first.indexOf(TASK) + TASK.length)
    expect(generator.retryPrompt(TASK, makeFailure()).startsWith(given)).toBe(true)
    const step = generator.stepPrompt(TASK, stepView({ step: 1, collected: [], state: 1 }))
    const next = generator.stepPrompt(TASK, stepView({ state: 2 }))
    const again = generator.stepPrompt(TASK, stepView({ state: 3, failure: makeFailure() }))
    expect(next.startsWith(step.slice(0, step.indexOf(TASK) + TASK.length))).toBe(true)
    const data = 'step 1, "orders": '
    expect(again.startsWith(next.slice(0, next.indexOf(data) + data.length))).toBe(true)
  })

  test('the sentence that a failed call raises ToolError occurs once', () => {
    expect(
      fullGenerator()
        .firstPrompt(TASK)
        .match(/ToolError/g),
    ).toHaveLength(1)
  })

  test('only a prompt with data mentions data (OR-03)', () => {
    const generator = new ScriptGenerator()
    const failure = makeFailure()
    for (const [text, shows] of [
      [generator.retryPrompt(TASK, failure), false],
      [generator.stepPrompt(TASK, stepView({ collected: [] })), false],
      [generator.stepPrompt(TASK, stepView({ collected: [], failure })), false],
      [generator.stepPrompt(TASK, stepView()), true],
      [generator.stepPrompt(TASK, stepView({ failure })), true],
      [generator.stepPrompt(TASK, stepView({ forceFinish: true })), true],
    ] as const) {
      expect(text.includes('Do NOT re-fetch data already shown above.')).toBe(shows)
    }
  })

  test('long lines of the last script are cut, and so is a script that is long as a whole', () => {
    const failure = { traceback: null, error: 'failed' }
    for (const script of [`x = "${'a'.repeat(200_000)}"`, 'x = 1\n'.repeat(40_000)]) {
      const prompt = new ScriptGenerator().retryPrompt(TASK, makeFailure({ ...failure, script }))
      expect(prompt.length).toBeLessThan(40_000)
      expect(prompt).toContain('characters left out')
    }
    const script = 'x = 1\n'.repeat(4000)
    expect(new ScriptGenerator().retryPrompt(TASK, makeFailure({ ...failure, script }))).toContain(script)
  })

  test('without tools, inputs and the rest the prompts do not mention them', () => {
    const text = new ScriptGenerator().firstPrompt(TASK)
    for (const word of ['Functions:', 'Variables:', 'JSON Schema', 'runs before', 'Modules']) {
      expect(text).not.toContain(word)
    }
    expect(text).not.toContain('{{')
    expect(text).not.toContain('\n\n\n')
    expect(text).toContain(`Task:\n${TASK}`)
  })

  test('each can be replaced; the others stay', () => {
    const generator = new ScriptGenerator({ prompts: { first: 'Do it: {{ task }}\n\n{{tools}}\n\nNow.' } })
    expect(generator.firstPrompt(TASK)).toBe(`Do it: ${TASK}\n\nNow.`)
    expect(generator.retryPrompt(TASK, makeFailure())).toContain('Your last script failed.')
    expect(new ScriptGenerator({ prompts: { first: undefined } as object }).firstPrompt(TASK)).toContain(TASK)
  })

  test('a prompt or a placeholder that does not exist is a TypeError that names the nearest', () => {
    expect(() => new ScriptGenerator({ prompts: { first: 'Do {{tsak}}' } })).toThrow(
      /^prompts\.first: no placeholder \{\{tsak\}\}\. Did you mean "task"\? Choose one of: task, /,
    )
    expect(() => new ScriptGenerator({ prompts: { frist: 'Do it' } as object })).toThrow(
      'prompts: unknown option "frist". Did you mean "first"?',
    )
    expect(() => new ScriptGenerator({ prompts: { step: 5 } as unknown as object })).toThrow(
      'prompts.step: 5 is not a string',
    )
  })

  test('there are five', () => {
    expect(Object.keys(DEFAULT_PROMPTS)).toEqual(['first', 'retry', 'step', 'stepRetry', 'finish'])
  })
})
