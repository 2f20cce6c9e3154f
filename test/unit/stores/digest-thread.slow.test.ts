import { createHash } from 'node:crypto'
import { once } from 'node:events'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { storeInMemory } from '../../../src/artifacts/index.ts'

// In a process of its own: where another file has used the thread a moment ago, none is started.
test('content is hashed by the host if the thread ends before it is ready', async () => {
  const content = Buffer.alloc(5 * 1024 ** 2, 'content')
  const started = once(process, 'worker') as Promise<[Worker]>
  const stored = storeInMemory().put('a', content)
  const [worker] = await started
  await worker.terminate()
  const sha256 = createHash('sha256').update(content).digest('hex')
  expect(await stored).toEqual({ sha256, size: content.length })
})
