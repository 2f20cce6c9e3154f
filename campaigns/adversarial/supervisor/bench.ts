import { expect } from 'vitest'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { RunOptions } from '../../../src/options/index.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { eventually } from '../../../test/support/eventually.ts'
import { countAtRest } from '../driver/count-at-rest.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import { readFilter, scriptNamed, type Filter } from './scripts.ts'

/** Runs the scripts of this folder in warm sandboxes and checks what they leave. */
export interface Bench {
  readonly filter: Filter
  run(name: string, inputs?: Readonly<Record<string, unknown>>, options?: RunOptions): Promise<ExecutionResult>
  runText(script: string, options?: RunOptions): Promise<ExecutionResult>
  /** Asserts that the next run succeeds, and returns its result. */
  next(): Promise<ExecutionResult>
  /** Asserts that a sandbox is gone or has no more processes than an idle one. */
  noSurvivors(sandboxId: string): Promise<void>
  close(): Promise<void>
}

/** Limit of processes and threads in a sandbox. Low, so that a fork bomb reaches it quickly. */
export const PIDS = 64

/** Opens a Sandglass for the rows of a test file. */
export async function openBench(engine: EngineUnderTest): Promise<Bench> {
  const filter = readFilter()
  const sandglass: Sandglass = await engine.open({ poolSize: 1, maxOverflow: 1, limits: { pids: PIDS } })
  const idle = await sandglass.run('emit_result(0)')
  const atRest = await countAtRest(engine, idle.sandbox.id)
  return {
    filter,
    run: (name, inputs = {}, options = {}) =>
      sandglass.run(scriptNamed(name), { inputs: { numbers: filter.numbers, ...inputs }, ...options }),
    runText: (script, options = {}) => sandglass.run(script, options),
    async next() {
      const result = await sandglass.run('emit_result(1)')
      expect([result.status, result.finalData]).toEqual(['completed', 1])
      return result
    },
    async noSurvivors(sandboxId) {
      const problem = (): string | undefined => {
        const left = engine.processesOf(sandboxId)
        return left.length <= atRest ? undefined : `${left.length} processes instead of ${atRest}`
      }
      // Checks during the next run, when its script is the process that an idle sandbox keeps ready. Right after a run,
      // that process may not be forked yet, and a survivor would be counted in its place.
      const look = defineTool({
        name: 'look',
        description: 'Describes the processes that are left.',
        input: { type: 'object' },
        execute: async () => (await eventually(problem, 2000)) ?? 'nothing',
      })
      expect((await sandglass.run('emit_result(look())', { tools: [look] })).finalData).toBe('nothing')
    },
    close: () => sandglass.close(),
  }
}
