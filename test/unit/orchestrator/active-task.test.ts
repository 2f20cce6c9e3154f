import { expect, test } from 'vitest'
import { ExecutionMode } from '../../../src/executor/index.ts'
import { makeJob } from '../../../src/orchestrator/make-job.ts'
import type { TaskOptions } from '../../../src/orchestrator/options.ts'
import { ActiveTask } from '../../../src/orchestrator/active-task.ts'

test('a value to hide and a secret of one name are both redacted', () => {
  const task = new ActiveTask(jobWith({ secrets: { KEY: 'of-the-script' }, hide: { KEY: 'of-the-host' } }))
  expect(task.redactor.text('of-the-script, of-the-host')).toBe('[redacted:KEY], [redacted:KEY]')
  task.dispose()
})

test.each([
  [[], 'hide: an array is not an object of names and values'],
  [{ KEY: undefined }, 'hide.KEY: its value is not a string'],
])('hide: %j is refused as in a run of a script', (hide, message) => {
  expect(() => jobWith({ hide: hide as never })).toThrow(
    expect.objectContaining({ code: 'invalid_request', message }) as Error,
  )
})

test('no part of a value to hide is left where a prompt cuts an input', () => {
  const KEY = 'sk-0123456789abcdefghij'
  for (let before = 270; before < 300; before += 1) {
    const { generator } = jobWith({ inputs: { text: 'a'.repeat(before) + KEY + 'b'.repeat(500) }, hide: { KEY } })
    expect(generator.firstPrompt('Do it')).not.toContain('sk-0')
  }
})

function jobWith(options: TaskOptions): ReturnType<typeof makeJob> {
  const unused = (): never => {
    throw new Error('not called')
  }
  const base = {
    mode: ExecutionMode.PLAN,
    host: { sandboxName: 'none', checkout: unused, check: unused },
    llmCall: unused,
    tools: undefined,
  }
  return makeJob('A task', base, options)
}
