import { expect } from 'vitest'
import { ExecutionMode, ScriptExecutor } from '../../../../src/executor/index.ts'
import { resolveLimits, type Sandbox, sandboxLimits, type SandboxSpec } from '../../../../src/sandbox/index.ts'

/** A sandbox with the default limits. */
export const SPEC: SandboxSpec = { limits: sandboxLimits(resolveLimits()) }

/** The value that a script passes to emit_result. */
export async function resultOf(sandbox: Sandbox, script: string): Promise<unknown> {
  const run = await new ScriptExecutor({ mode: ExecutionMode.PLAN }).run({ sandbox, script })
  expect(run.error).toBeNull()
  return run.finalData
}
