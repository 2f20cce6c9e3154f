import { z } from 'zod'
import { bridgedTools, defineTool, prepareTools } from '../src/tools/index.ts'
import { type Sandbox, ScriptExecutor } from './subject.ts'

const add = defineTool({
  name: 'add',
  description: 'Adds.',
  effect: 'read',
  input: z.object({ a: z.number(), b: z.number() }),
  execute: ({ a, b }) => a + b,
})

/**
 * Returns a function that runs a script in a sandbox. The script calls a host tool `count` times and returns the milliseconds
 * of each call, as it measures them itself.
 */
export function makeTimedCalls(count: number): (sandbox: Sandbox) => Promise<number[]> {
  const executor = new ScriptExecutor({ mode: 'interactive' })
  const tools = bridgedTools(prepareTools([add]), { maxCalls: count })
  const script = `
import time
clock, times = time.perf_counter_ns, []
for n in range(${count}):
    start = clock()
    add(n, 1)
    times.append((clock() - start) / 1e6)
emit_result(times)
`
  return async (sandbox) => {
    const result = await executor.run({ sandbox, script, tools })
    if (!result.success) throw new Error(result.error ?? result.status)
    return result.finalData as number[]
  }
}
