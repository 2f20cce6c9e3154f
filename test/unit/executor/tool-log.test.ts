import { expect, test } from 'vitest'
import { ToolLog } from '../../../src/executor/tool-log.ts'
import { Redactor } from '../../../src/redaction/index.ts'

test('a call with a long answer is answered at once, and its event follows without the secret', async () => {
  const log = new ToolLog('run-1', new Redactor({ KEY: 'top-secret-value' }))
  log.noteCall({ type: 'tool_call', execution_id: 'run-1', id: '1', name: 'ask', args: {} }, 'read')
  log.noteExecution('1')
  const resultJson = `"${'x'.repeat(3 * 1024 * 1024)}top-secret-value"`
  const noted = log.noteEnd('1', { ms: 1, error: undefined, resultJson })
  expect([log.unanswered, log.calls.map(({ state, ok }) => [state, ok])]).toEqual([0, [['answered', true]]])
  expect(log.takeNews().map(({ type }) => type)).toEqual(['tool_call'])
  await noted
  const [event] = log.takeNews()
  expect(event).toMatchObject({ type: 'tool_result', ok: true })
  expect(JSON.stringify(event).endsWith('x[redacted:KEY]\\""}')).toBe(true)
})
