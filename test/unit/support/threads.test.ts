import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Worker } from 'node:worker_threads'
import { afterEach, expect, test, vi } from 'vitest'
import { hasStarted, siblingModule } from '../../../src/support/index.ts'

afterEach(() => void vi.useRealTimers())

test.each([
  ['file:///lib/src/stores/digest-thread.ts', 'file:///lib/src/stores/name.ts'],
  ['file:///lib/dist/stores/digest-thread.js', 'file:///lib/dist/stores/name.js'],
  ['file:///app/bundle.min.mjs', 'file:///app/name.mjs'],
  ['file:///app/bundle.mjs?v=1', 'file:///app/name.mjs'],
  ['file:///app/bundle.mjs#part/a', 'file:///app/name.mjs'],
  ['file:///app.d/program', 'file:///app.d/name'],
])('beside %s, a module is %s', (url, sibling) => {
  expect(siblingModule(url, 'name').href).toBe(sibling)
})

test('a thread has started when it says something', async () => {
  const worker = new Worker("require('node:worker_threads').parentPort.postMessage('ready')", { eval: true })
  expect(await hasStarted(worker)).toBe(true)
  await worker.terminate()
})

test.each([
  ['has no module', () => new Worker(pathToFileURL(join(import.meta.dirname, 'none.js')))],
  ['fails', () => new Worker("throw new Error('x')", { eval: true })],
  ['ends', () => new Worker('0', { eval: true })],
])('a thread that %s before it says something has not started', async (_, start) => {
  expect(await hasStarted(start())).toBe(false)
})

test('a thread that says nothing for 10 s has not started', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const worker = new Worker('setInterval(() => {}, 1000)', { eval: true })
  const started = hasStarted(worker)
  await vi.advanceTimersByTimeAsync(10_000)
  expect(await started).toBe(false)
  await worker.terminate()
})
