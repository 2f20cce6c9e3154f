import { afterEach, expect, test, vi } from 'vitest'
import { askJudge } from '../../../src/judge/index.ts'

afterEach(() => void vi.useRealTimers())

test('a module that is never ready has another error than a slow answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const module = new URL(`data:text/javascript,${encodeURIComponent('await new Promise(() => {})')}`)
  const judged = askJudge({ module, input: () => null, inputBytes: 0, deadlineMs: 5000 })
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await judged).toEqual({ kind: 'failed', text: 'the process for checks was not ready within 10000 ms' })
})
