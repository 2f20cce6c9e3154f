import { setTimeout as sleep } from 'node:timers/promises'
import { expect } from 'vitest'
import type { ExecutionResult } from '../../../src/executor/index.ts'
import type { RunOptions } from '../../../src/options.ts'
import type { Sandglass } from '../../../src/sandglass.ts'
import { defineTool } from '../../../src/tools/index.ts'
import { eventually } from '../../support/eventually.ts'
import type { EngineUnderTest } from '../driver/engine.ts'
import { readFilter, scriptNamed, type Filter } from './scripts.ts'

/** Runs the scripts of this folder in one warm sandbox after the other, and looks at what they leave. */
export interface Bench {
  readonly filter: Filter
  run(name: string, inputs?: Readonly<Record<string, unknown>>, options?: RunOptions): Promise<ExecutionResult>
  runText(script: string, options?: RunOptions): Promise<ExecutionResult>
  /** Asserts that the next run is fine, and gives it. */
  next(): Promise<ExecutionResult>
  /** Asserts that a sandbox is gone, or holds no more than it does at rest. */
  noSurvivors(sandboxId: string): Promise<void>
  close(): Promise<void>
}

/** Processes and threads in a sandbox together: little, so that a fork bomb is quickly at its limit. */
export const PIDS = 64

/** Opens a Sandglass for the rows of a test file. */
export async function openBench(engine: EngineUnderTest): Promise<Bench> {
  const filter = readFilter()
  const sandglass: Sandglass = await engine.open({ poolSize: 1, maxOverflow: 1, limits: { pids: PIDS } })
  const idle = await sandglass.run('emit_result(0)')
  await sleep(300)
  const atRest = engine.processesOf(idle.sandbox.id).length
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
      // Looks while the next run is on: its script is the process that waits at rest. Right after a run that one may be
      // still to be forked, and a survivor would pass for it.
      const look = defineTool({
        name: 'look',
        description: 'What is left, in words.',
        input: { type: 'object' },
        execute: async () => (await eventually(problem, 2000)) ?? 'nothing',
      })
      expect((await sandglass.run('emit_result(look())', { tools: [look] })).finalData).toBe('nothing')
    },
    close: () => sandglass.close(),
  }
}
