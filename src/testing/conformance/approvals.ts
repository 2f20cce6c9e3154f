import assert from 'node:assert/strict'
import { setTimeout } from 'node:timers/promises'
import type { PendingCall } from '../../review/index.ts'
import type { Sandglass } from '../../sandglass.ts'
import { defineTool } from '../../tools/index.ts'
import type { Fixture } from './fixture.ts'
import { python } from './peer.ts'

/** The time limit of the script, in seconds, and the longer time until the person answers, in milliseconds. */
const [TIMEOUT_SEC, THINKING_MS] = [3, 3300]
const MAX_WAIT_MS = 60_000

/** Tests calls of tools that wait for a person. */
export function registerApprovalTests(at: Fixture): void {
  at.test(
    'calls wait for a person longer than the script may take, several at once',
    ['broker', 'kernel', 'webassembly'],
    async () => {
      const sg = await at.sandglass()
      const paid: unknown[] = []
      const pay = defineTool({
        name: 'pay',
        description: 'Pays.',
        input: { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] },
        approve: true,
        execute: ({ to }) => paid.push(to),
      })
      const script = python`
      import asyncio
      async def main():
          return await asyncio.gather(pay("ann"), pay("bob"), return_exceptions=True)
      count, refused = asyncio.run(main())
      emit_result([count, refused.code, str(refused)])
    `
      const running = sg.run(script, { tools: [pay], limits: { executionTimeoutSec: TIMEOUT_SEC, maxToolWaitSec: 0 } })
      const calls = await twoCalls(sg)
      await setTimeout(THINKING_MS)
      assert.deepEqual(paid, [])
      for (const { id, args } of calls)
        await ((args as { to: string }).to === 'ann' ? sg.approve(id, { args: { to: 'eve' } }) : sg.deny(id, 'not him'))
      const { status, finalData } = await running
      assert.deepEqual(
        [status, finalData, paid],
        ['completed', [1, 'denied', 'pay: the call was denied: not him'], ['eve']],
      )
    },
  )
}

async function twoCalls(sg: Sandglass): Promise<readonly PendingCall[]> {
  for (const end = performance.now() + MAX_WAIT_MS; performance.now() < end; await setTimeout(10))
    if (sg.pending().length === 2) return sg.pending()
  throw new Error(`${sg.pending().length} calls wait, and not 2`)
}
