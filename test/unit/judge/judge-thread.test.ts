import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { afterEach, expect, test, vi } from 'vitest'
import { askThread, type Judgement } from '../../../src/judge/index.ts'

function ask(program: string, inputBytes = 0): Promise<Judgement> {
  const module = new URL(`data:text/javascript,${encodeURIComponent(program)}`)
  return askThread({ module, input: () => null, inputBytes, deadlineMs: 5000 })
}

afterEach(() => void vi.useRealTimers())

test('a thread that ends while idle is replaced', async () => {
  // Test files share a process and so its judge. A thread that another file left ends after the answer to a large question.
  await ask('export const answer = () => "large"', 5 * 1024 * 1024)
  const started = once(process, 'worker') as Promise<[Worker]>
  expect(await ask('export const answer = () => { setImmediate(() => process.exit()); return "last" }')).toEqual({
    kind: 'answer',
    text: 'last',
  })
  const [worker] = await started
  await once(worker, 'exit')
  expect(await ask('export const answer = () => "next"')).toEqual({ kind: 'answer', text: 'next' })
})

test('a module that is never ready has another error than a slow answer', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const judged = ask('await new Promise(() => {})')
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await judged).toEqual({ kind: 'failed', text: 'the thread was not ready within 10000 ms' })
})
