import { expect, expectTypeOf, test } from 'vitest'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { ToolExecutionResult } from '../../../src/orchestrator/index.ts'
import { play, result, done } from './wire.ts'

test('success narrows the data of a run', async () => {
  const { result: given } = await play([result({ total: 1 }), done()])
  const ran = given as ExecutionResult<{ total: number }>
  if (ran.success) expectTypeOf(ran.finalData).toEqualTypeOf<{ total: number }>()
  else expectTypeOf(ran.finalData).toEqualTypeOf<null>()
  expect(ran.success && ran.finalData.total).toBe(1)
})

test('success narrows the data and the error of a task', () => {
  const narrow = (task: ToolExecutionResult<{ total: number }>): number | string =>
    task.success ? task.finalData.total : task.error
  expect(narrow({ success: false, finalData: null, error: 'spent' } as never)).toBe('spent')
})
