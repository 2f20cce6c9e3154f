import { describe, expect, test } from 'vitest'
import { LocalPythonExecutor } from '../../src/code-agent/index.ts'
import { checkExecutor, checkWebSocket } from '../support/code-agent/executor-rules.ts'
import { noUv } from '../support/environments/fixture.ts'
import { requireLocalEngine } from '../support/local-engine.ts'
import { skipFor } from '../support/required.ts'

const { skip } = await requireLocalEngine()
if (noUv !== undefined) skipFor('uv', noUv)

describe.skipIf(skip)('LocalPythonExecutor', () => {
  test.skipIf(noUv !== undefined)(
    'CA-03, CA-04, CA-11, CA-12 runs scripts with tools, a workspace and packages, which go with it',
    async () => {
      await expect(checkExecutor((options) => new LocalPythonExecutor(options))).resolves.toBeUndefined()
    },
  )

  test('CA-07 answers calls of tools over a WebSocket', async () => {
    await expect(checkWebSocket((options) => new LocalPythonExecutor(options))).resolves.toBeUndefined()
  })

  test('without packages and workspace starts no installer; refuses an unknown option and a call after its end', async () => {
    expect(() => new LocalPythonExecutor({ transport: 'udp' as never })).toThrow('transport: "udp" is neither')
    const executor = new LocalPythonExecutor({ limits: { executionTimeoutSec: 5 } })
    expect(await executor.execute([], 'print(1)', [])).toBe('1\n')
    await executor[Symbol.asyncDispose]()
    await expect(executor.execute([], 'print(1)', [])).rejects.toMatchObject({ code: 'pool_closed' })
    expect(() => new LocalPythonExecutor({ workspace: '/tmp' } as object)).toThrow(/workspaceDir/)
  })
})
