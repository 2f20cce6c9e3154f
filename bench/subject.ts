import {
  dockerEngine,
  localEngine,
  ScriptExecutor,
  type ExecutionResult,
  type Sandbox,
  type SandboxSpec,
} from '../src/index.ts'
import { resolveLimits, sandboxLimits } from '../src/sandbox/index.ts'

export { createSandglass } from '../src/index.ts'
export { dockerEngine, localEngine, type Sandbox, ScriptExecutor }

/** Creates a spec and a function that runs scripts in a given sandbox, for benches below `createSandglass`. */
export function resolveForBench(): {
  spec: SandboxSpec
  execute: (sandbox: Sandbox, script: string) => Promise<ExecutionResult>
} {
  const executor = new ScriptExecutor({ mode: 'interactive' })
  return {
    spec: { limits: sandboxLimits(resolveLimits()) },
    execute: (sandbox, script) => executor.run({ sandbox, script }),
  }
}
