import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import { readBounded } from '../../../src/environments/read-bounded.ts'

/** Bytes that arrive one by one, each in the buffer of a connection. */
async function* slowly(count: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at += 1) {
    yield Promise.resolve(new Uint8Array(64 * 1024).fill(at % 251, 0, 1).subarray(0, 1))
  }
}

test('a body is read whole, in the order of its chunks', async () => {
  const whole = Uint8Array.from({ length: 200_000 }, (_, at) => at % 251)
  const chunks = [whole.subarray(0, 1), whole.subarray(1, 1), whole.subarray(1, 150_000), whole.subarray(150_000)]
  const read = await readBounded(Readable.from(chunks), 200_000, 'it')
  expect(Buffer.compare(read, whole)).toBe(0)
})

test('a body of more bytes than allowed is refused, naming its source', async () => {
  await expect(readBounded(slowly(11), 10, 'http://127.0.0.1/uv/')).rejects.toThrow(
    'http://127.0.0.1/uv/ has more than 10 bytes',
  )
  expect(await readBounded(slowly(10), 10, 'it')).toHaveLength(10)
})
