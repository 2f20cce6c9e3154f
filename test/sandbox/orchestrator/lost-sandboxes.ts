import { expect, test } from 'vitest'
import { SandboxPool, type SandboxSpec, ToolOrchestrator, type ToolOrchestratorOptions } from '../../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../../src/sandbox/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import type { EngineAlone } from './engine-alone.ts'

export const specs: Readonly<Record<string, SandboxSpec>> = { default: { limits: sandboxLimits(resolveLimits({})) } }
export const TASK = 'Anything'

/** An orchestrator on a pool, with a model that writes a correct script. */
export function orchestrator(pool: SandboxPool, options: Partial<ToolOrchestratorOptions> = {}): ToolOrchestrator {
  return new ToolOrchestrator({ pool, llmCall: scriptedModel('emit_result(1)'), ...options })
}

/** Tests with leased and lost sandboxes: each engine loses a sandbox in its own way. */
export function lostSandboxTests(at: EngineAlone): void {
  test('a pool whose only sandbox is lent to another: checkoutTimeoutMs ends the wait (PO-04)', async () => {
    await using pool = new SandboxPool({ engine: at.engine, specs, poolSize: 0, maxOverflow: 1 })
    const other = await pool.checkout('default', { key: 'other' })
    const result = await orchestrator(pool, { checkoutTimeoutMs: 100, policy: 'off' }).execute(TASK)
    expect(result).toMatchObject({
      success: false,
      record: {
        status: 'infrastructure',
        attempts: [{ status: 'infrastructure', script: 'emit_result(1)', sandbox: null }],
      },
    })
    expect(result.error).toMatch(/\(pool_exhausted\)$/)
    await other.release()
    expect((await orchestrator(pool, { policy: 'off' }).execute(TASK)).finalData).toBe(1)
  }, 60_000)

  test('a sandbox that is lost in a step: the next attempt gets another (PO-04)', async ({ skip: leave }) => {
    if (at.name === 'pyodide') {
      const reason = 'no script can end its sandbox: the broker runs in the process of the host'
      console.warn(`skipped: pyodide: a sandbox that is lost in a step: ${reason}`)
      leave(reason)
    }
    await using pool = new SandboxPool({ engine: at.engine, specs, poolSize: 1 })
    const model = scriptedModel(
      'emit_intermediate("a", 1)',
      'import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nimport time\ntime.sleep(1)',
      'emit_result(collected[0]["data"])',
    )
    const result = await orchestrator(pool, { llmCall: model, policy: 'off' }).executeInteractive(TASK)
    expect(result).toMatchObject({ success: true, finalData: 1 })
    const attempts = result.record.steps.flatMap((step) => step.attempts)
    expect(attempts.map(({ status }) => status).at(-1)).toBe('completed')
    expect(attempts.length).toBe(3)
  }, 60_000)
}
