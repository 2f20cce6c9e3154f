import { describe, expect, test } from 'vitest'
import { DEFAULT_PROMPTS, ScriptGenerator } from '../../src/script/index.ts'
import { failed, fullGenerator, stepView } from './prompt-case.ts'

const TASK = 'What did the customer spend?'

/** All five prompts with everything in them, one behind the other. */
function everyPrompt(): string {
  const generator = fullGenerator({ keepsState: true })
  const rejected = failed({
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
  const calls = failed({
    failedCalls: [{ name: 'orders', code: 'tool_failed', message: 'no customer C-1' }],
    repetition: 'This is the same error as before: the last change did not mend it. Try another way.',
    stderr: 'a warning\n',
  })
  const prompts = {
    first: generator.firstPrompt(TASK),
    'retry, after a run': generator.retryPrompt(TASK, calls),
    'retry, after a check': generator.retryPrompt(TASK, rejected),
    step: generator.stepPrompt(TASK, stepView({ state: { page: 3 } })),
    'step, the first': generator.stepPrompt(TASK, stepView({ step: 1, collected: [] })),
    'step, again': generator.stepPrompt(TASK, stepView({ failure: failed() })),
    finish: generator.stepPrompt(TASK, stepView({ forceFinish: true })),
    'finish, again': generator.stepPrompt(TASK, stepView({ forceFinish: true, failure: failed() })),
  }
  return Object.entries(prompts)
    .map(([name, text]) => `######## ${name}\n\n${text}\n`)
    .join('\n')
}

describe('prompts (OR-12)', () => {
  test('they are these', async () => {
    await expect(everyPrompt()).toMatchFileSnapshot('./prompts.snapshot.txt')
  })

  test('without tools, inputs and the rest nothing speaks of them', () => {
    const text = new ScriptGenerator().firstPrompt(TASK)
    for (const word of ['These functions are there', 'These variables', 'JSON Schema', 'was run before', 'Modules']) {
      expect(text).not.toContain(word)
    }
    expect(text).not.toContain('{{')
    expect(text).not.toContain('\n\n\n')
    expect(text).toContain(`Task:\n${TASK}`)
  })

  test('each can be replaced; the others stay', () => {
    const generator = new ScriptGenerator({ prompts: { first: 'Do it: {{ task }}\n\n{{tools}}\n\nNow.' } })
    expect(generator.firstPrompt(TASK)).toBe(`Do it: ${TASK}\n\nNow.`)
    expect(generator.retryPrompt(TASK, failed())).toContain('Your last script did not do it.')
    expect(new ScriptGenerator({ prompts: { first: undefined } as object }).firstPrompt(TASK)).toContain(TASK)
  })

  test('a prompt or a placeholder that does not exist is a TypeError that names the nearest', () => {
    expect(() => new ScriptGenerator({ prompts: { first: 'Do {{tsak}}' } })).toThrow(
      /^prompts\.first: no placeholder \{\{tsak\}\}\. Did you mean "task"\? Known are task, /,
    )
    expect(() => new ScriptGenerator({ prompts: { frist: 'Do it' } as object })).toThrow(
      'prompts: no option "frist". Did you mean "first"?',
    )
    expect(() => new ScriptGenerator({ prompts: { step: 5 } as unknown as object })).toThrow(
      'prompts.step: must be a string',
    )
  })

  test('there are five', () => {
    expect(Object.keys(DEFAULT_PROMPTS)).toEqual(['first', 'retry', 'step', 'stepRetry', 'finish'])
  })
})
