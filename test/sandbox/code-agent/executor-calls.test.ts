import { once } from 'node:events'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { DockerPythonExecutor, LocalPythonExecutor } from '../../../src/code-agent/index.ts'
import { defineTool } from '../../../src/index.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

test('before its first script, an executor starts no engine to say that no call waits', async () => {
  await using executor = new DockerPythonExecutor({ docker: { host: 'unix:///nowhere/docker.sock' } })
  expect(await executor.pending()).toEqual([])
  for (const answer of [executor.approve('an id'), executor.deny('an id')])
    await expect(answer).rejects.toMatchObject({ code: 'approval_unknown' })
})

test.skipIf(skip)(
  'an executor that is disposed of cancels a script whose call waits for a person',
  async () => {
    const paid: unknown[] = []
    const pay = defineTool({
      name: 'pay',
      description: '',
      input: z.object({}),
      approve: true,
      execute: () => paid.push('paid'),
    })
    const asked = new EventTarget()
    const executor = new LocalPythonExecutor({ onPending: () => void asked.dispatchEvent(new Event('asked')) })
    const waits = once(asked, 'asked')
    const running = executor.execute([pay], 'pay()', [])
    await waits
    expect(await executor.pending()).toMatchObject([{ tool: 'pay' }])
    await executor[Symbol.asyncDispose]()
    expect(await running).toMatch(/^Error: the script ended with cancelled/)
    expect(paid).toEqual([])
  },
  20_000,
)
