import { describe, expect, test } from 'vitest'
import { SandboxPool, ToolOrchestrator } from '../../../src/index.ts'
import { resolveLimits, sandboxLimits } from '../../../src/sandbox/index.ts'
import { scriptedModel } from '../../../src/testing/index.ts'
import { fakeEngine } from '../../support/pool/fake-engine.ts'
import { onLocalAlone } from './engine-alone.ts'
import { orchestratorTests } from './orchestrator.ts'

const spec = { limits: sandboxLimits(resolveLimits({})) }

describe('ToolOrchestrator', async () => {
  await onLocalAlone(orchestratorTests)
})

describe('options of ToolOrchestrator', () => {
  type Options = ConstructorParameters<typeof ToolOrchestrator>[0]
  const llmCall = scriptedModel('emit_result(1)')

  test('one that does not exist, or no pool, or no model is a TypeError', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs: { default: spec } })
    expect(() => new ToolOrchestrator({ pool, llmCall, maxRetriez: 1 } as Options)).toThrow(
      'Did you mean "maxRetries"?',
    )
    expect(() => new ToolOrchestrator({ llmCall } as unknown as Options)).toThrow('pool must be a SandboxPool')
    expect(() => new ToolOrchestrator({ pool } as unknown as Options)).toThrow(TypeError)
  })

  test('so is an invalid option of a task', async () => {
    await using pool = new SandboxPool({ engine: fakeEngine(), specs: { default: spec } })
    const orchestrator = new ToolOrchestrator({ pool, llmCall })
    await expect(orchestrator.execute('')).rejects.toThrow('task: must be a text')
    await expect(orchestrator.execute('x', 'default', { maxStep: 1 } as object)).rejects.toThrow('"maxSteps"')
    await expect(orchestrator.executeInteractive('x', 'default', 0)).rejects.toThrow('maxSteps: 0')
    await expect(orchestrator.execute('x', 'default', { prompts: { first: '{{tusk}}' } })).rejects.toThrow('"task"')
  })
})
