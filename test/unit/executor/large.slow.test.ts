import { expect, test } from 'vitest'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'
import { frame, play } from './wire.ts'

const MiB = 1024 * 1024

test('a flood of single characters uses little more memory than its kept part', async () => {
  const piece = Buffer.from(`${JSON.stringify(frame('stdout', { text: 'x' }))}\n`)
  const chunk = Buffer.concat(Array.from({ length: 1024 }, () => piece))
  const before = process.memoryUsage().rss
  const { result: got } = await play(Array.from({ length: 1200 }, () => chunk))
  const grown = process.memoryUsage().rss - before
  expect([got.status, got.stdout.length]).toEqual(['output-limit', MiB])
  expect(grown / MiB).toBeLessThan(64)
})

test('collected files of more than 64 MiB together break the channel', async () => {
  const content = Buffer.alloc(4 * MiB)
  const frames = function* (): Generator<ReturnType<typeof frame>, void, void> {
    for (let index = 0; index < 17; index += 1) {
      for (let offset = 0; offset < content.length; offset += 192 * 1024) {
        yield frame('file', {
          path: `out/${index}`,
          size: content.length,
          offset,
          content_base64: content.subarray(offset, offset + 192 * 1024).toString('base64'),
        })
      }
    }
  }
  const { result: got } = await play([...frames()], { request: { collect: ['out/**'] } })
  expect(got).toMatchObject({
    status: 'sandbox-lost',
    error: expect.stringContaining('files of more than 67108864 bytes') as string,
  })
  expect(got.files).toHaveLength(16)
})

test('inputs that expand beyond the limit of a channel are refused before anything is sent', async () => {
  const doubling = Array.from({ length: 60 }).reduce((value: unknown) => [value, value], 1)
  const sandbox = replayChannel([])
  await expect(new ScriptExecutor().run({ sandbox, script: 'x', inputs: { a: doubling } })).rejects.toThrow(
    expect.objectContaining({
      code: 'invalid_request',
      message: expect.stringContaining('inputs: they are too large') as string,
    }),
  )
  expect(sandbox.sent).toEqual([])
})
