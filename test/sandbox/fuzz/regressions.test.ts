import { describe, expect, test } from 'vitest'
import { localEngine } from '../../../src/engines/local/index.ts'
import { decodeLine } from '../../../src/protocol/index.ts'
import { ping, type Sandbox } from '../../../src/sandbox/index.ts'
import { SPEC } from '../engines/local/plain-sandbox.ts'
import { requireLocalEngine } from '../../support/local-engine.ts'

const { skip } = await requireLocalEngine()

/* The smallest input of each defect that fuzzing found. */

describe('found by fuzzing', () => {
  test('the key __proto__ of the arguments of a call is not dropped, so that it can be refused (seed 7, host case 27033)', () => {
    const line = '{"type":"tool_call","execution_id":"e","id":"1","name":"n","args":{"__proto__":{"a":1},"b":2}}'
    const decoded = decodeLine(Buffer.from(line))
    expect(JSON.stringify(decoded)).toBe(`{"kind":"frame","frame":${line}}`)
    expect(({} as { a?: unknown }).a).toBeUndefined()
  })

  test.skipIf(skip)(
    'an invalid request ends a sandbox with one line that gives the reason, and no traceback',
    async () => {
      await using sandbox = await sandboxSent('{"type":"execute","execution_id":"e","timeout_sec":"x"}\n')
      const message = 'the host sent an invalid request: execute has an invalid script'
      expect(await sandbox.closed).toMatchObject({ cause: 'exit', exitCode: 1, by: 'unknown', message })
    },
  )

  test.skipIf(skip)('a timeout of 300 years is accepted and does not fire (seed 5, broker case)', async () => {
    const nothing = { inputs: {}, secrets: {}, required_secrets: [], collect: [], limits: {} }
    const asked = { mode: 'plan', timeout_sec: 1e10, max_output_bytes: 1000, ...nothing }
    const line = JSON.stringify({ type: 'execute', execution_id: 'e', ...asked, script: 'import time; time.sleep(60)' })
    await using sandbox = await sandboxSent(`${line}\n`)
    expect(await ping(sandbox.channel, 20_000)).toBe(true)
  })
})

async function sandboxSent(bytes: string): Promise<Sandbox> {
  const engine = localEngine()
  try {
    const sandbox = await engine.create(SPEC)
    await sandbox.channel.send(Buffer.from(bytes))
    return sandbox
  } finally {
    await engine.close()
  }
}
