import { expect, test } from 'vitest'
import type { ExecutionResult, RunEvent, SandboxRunRequest, ScriptExecutor } from '../../src/executor/index.ts'
import { LeasedRun } from '../../src/started-run.ts'

/** A run whose sandbox takes forever to end. */
function makeEndlessLease(): LeasedRun<unknown> {
  const result = { executionId: 'a' } as ExecutionResult
  const executor = {
    run: () => Promise.resolve(result),
    async *stream(): AsyncGenerator<RunEvent, void, void> {
      yield { type: 'result', executionId: 'a', result }
    },
  } as unknown as ScriptExecutor
  const release = (): Promise<void> => Promise.withResolvers<void>().promise
  return new LeasedRun(executor, {} as SandboxRunRequest, { release }, (ran) => Promise.resolve(ran))
}

test('neither the result of a run nor that of its stream waits for the end of the sandbox', async () => {
  expect(await makeEndlessLease().run()).toMatchObject({ executionId: 'a' })
  const events: string[] = []
  for await (const { type } of makeEndlessLease().stream()) events.push(type)
  expect(events).toEqual(['result'])
})
