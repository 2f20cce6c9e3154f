import { Readable } from 'node:stream'
import { expect, test } from 'vitest'
import type { PoolStats } from '../../../src/index.ts'
import { createSandglass } from '../../../src/sandglass.ts'
import { onLocal } from './on-engine.ts'

const SCRIPT = `import sys
emit_result([sys.stdin.buffer.readline().decode(), sys.stdin.buffer.read().hex()])`

await onLocal((at) => {
  test('a script and its programs read stdin, and nothing where none is given', async () => {
    const bytes = Buffer.from('é\n\u0000end')
    expect((await at.sg.run(SCRIPT, { stdin: bytes })).finalData).toEqual(['é\n', '00656e64'])
    const sizes = 'import subprocess\nemit_result(int(subprocess.check_output(["wc", "-c"])))'
    const large = 'x'.repeat(5_000_000)
    expect((await at.sg.run(sizes, { stdin: large })).finalData).toBe(5_000_000)
    expect((await at.sg.run(sizes)).finalData).toBe(0)
    expect((await at.sg.run('import os\nemit_result(os.listdir("/tmp"))', { stdin: 'x' })).finalData).toEqual([])
    await using workspace = await at.sg.workspace()
    expect((await workspace.run(sizes, { stdin: large })).finalData).toBe(5_000_000)
  }, 60_000)

  test('stdin that is no text or bytes, or too large, is refused', async () => {
    await expect(at.sg.run('1', { stdin: 1 as never })).rejects.toThrow(
      'stdin: 1 is neither a string, nor bytes, nor an async iterable of them',
    )
    await expect(at.sg.run('1', { stdin: new Uint8Array(2 ** 24 + 1) })).rejects.toThrow('stdin: 16777217 bytes')
  }, 60_000)

  test('a stream is read before the script begins, in a workspace, too', async () => {
    const piece = Buffer.alloc(4)
    async function* source(): AsyncGenerator<Uint8Array | string> {
      yield 'é\n'
      for (const letter of ['e', 'n', 'd']) {
        await Promise.resolve()
        yield piece.fill(letter)
      }
    }
    const expected = ['é\n', Buffer.from('eeeennnndddd').toString('hex')]
    expect((await at.sg.run(SCRIPT, { stdin: source() })).finalData).toEqual(expected)
    await using workspace = await at.sg.workspace()
    expect((await workspace.run(SCRIPT, { stdin: source() })).finalData).toEqual(expected)
    expect((await workspace.run(SCRIPT, { stdin: Readable.from(['a\n', 'b']) })).finalData).toEqual(['a\n', '62'])
  }, 60_000)

  test('a stream that fails, stalls, has no end or is given to an agent ends the call, and is left', async () => {
    // An earlier workspace is replaced in the background.
    const restOf = ({ starting, leased, waiting, idle, created, destroyed }: PoolStats): number[] => [
      starting + leased + waiting,
      idle,
      created - destroyed,
    ]
    await expect.poll(() => restOf(at.sg.stats()), { timeout: 20_000 }).toEqual([0, 1, 1])
    const before = at.sg.stats()
    let isLeft = 0
    async function* source(next: () => Promise<unknown>): AsyncGenerator<never> {
      try {
        for (;;) yield (await next()) as never
      } finally {
        isLeft += 1
      }
    }
    const failing = source(() => Promise.reject(new Error('unplugged')))
    const stalled = (): AsyncIterable<never> => ({
      [Symbol.asyncIterator]: () => ({
        next: () => Promise.withResolvers<never>().promise,
        return: () => Promise.resolve({ done: true, value: (isLeft += 1) }),
      }),
    })
    const refused = (stdin: AsyncIterable<never>, message: string, limits = {}): Promise<void> =>
      expect(at.sg.run('1', { stdin, limits })).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringContaining(message) as string,
      })
    await refused(failing, 'stdin: the stream failed: unplugged')
    const megabyte = new Uint8Array(2 ** 20)
    await refused(
      source(() => Promise.resolve(megabyte)),
      'stdin: the stream is too long; at most 16777216 bytes',
    )
    await refused(
      source(() => Promise.resolve(7)),
      'stdin: 7 in the stream is neither bytes nor text',
    )
    await refused(stalled(), 'stdin: the stream did not end within 0.2 s', { executionTimeoutSec: 0.2 })
    const signal = AbortSignal.timeout(50)
    await expect(at.sg.run('1', { stdin: stalled(), signal })).rejects.toMatchObject({ code: 'aborted' })
    expect(isLeft).toBe(5)
    expect(at.sg.stats()).toEqual(before)
    expect(() => at.sg.asTool({ stdin: stalled() as never })).toThrow('stdin: a stream can be read only once')
  }, 60_000)
})

test('Python in WebAssembly reads stdin, too', async () => {
  await using sg = await createSandglass({ engine: 'pyodide' })
  const script = 'import sys\nemit_result([input(), sys.stdin.read()])'
  expect((await sg.run(script, { stdin: 'a\nb\n' })).finalData).toEqual(['a', 'b\n'])
  expect((await sg.run(script, { stdin: Readable.from(['a\n', 'b\n']) })).finalData).toEqual(['a', 'b\n'])
}, 120_000)
