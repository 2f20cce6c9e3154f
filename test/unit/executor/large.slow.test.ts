import { expect, test } from 'vitest'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { watchGrowth } from '../../support/memory.ts'
import { done, frame, play } from './wire.ts'

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

test('collected files cost the memory of their bytes, however small the pieces and whatever they hold', async () => {
  const size = 400_000
  const path = 'out/a'
  const piece = (offset: number, bytes: Uint8Array, more: object = {}): ReturnType<typeof frame> =>
    frame('file', { path, size, offset, content_base64: Buffer.from(bytes).toString('base64'), ...more })
  const ofBytes = Array.from({ length: size }, (_, offset) => wireLines(piece(offset, Buffer.from('x'))))
  const secrets = Buffer.alloc(4 * MiB, 'tops3cret\n')
  const chunk = 192 * 1024
  const ofSecrets = Array.from({ length: Math.ceil(secrets.length / chunk) }, (_, at) =>
    piece(at * chunk, secrets.subarray(at * chunk, (at + 1) * chunk), { path: 'out/b', size: secrets.length }),
  )
  const lines = Buffer.concat([...ofBytes, wireLines(...ofSecrets, done())])
  const pieces = Array.from({ length: Math.ceil(lines.length / 65_536) }, (_, at) =>
    lines.subarray(at * 65_536, (at + 1) * 65_536),
  )
  const growth = watchGrowth()
  const { result: got } = await play(pieces, { request: { collect: ['out/**'], secrets: { KEY: 'tops3cret' } } })
  expect(got.files.map((file) => file.size)).toEqual([size, 4 * MiB])
  expect(got.warnings.map(({ code }) => code)).toEqual(['secret_in_file'])
  expect(growth()).toBeLessThan(32)
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

test('a request of more than 32 MiB is refused before anything is sent', async () => {
  const sandbox = replayChannel([])
  const request = { sandbox, script: 'x'.repeat(33 * MiB) }
  await expect(new ScriptExecutor().run(request)).rejects.toMatchObject({
    code: 'invalid_request',
    message: expect.stringContaining('request: ') as string,
  })
  expect([sandbox.sent, sandbox.destroyed]).toEqual([[], false])
})
