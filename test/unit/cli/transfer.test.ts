import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterAll, afterEach, expect, test, vi } from 'vitest'
import { Output } from '../../../src/cli/output.ts'
import { Arrivals, TransferLine } from '../../../src/cli/transfer.ts'

const directory = mkdtempSync(join(tmpdir(), 'sandglass-transfer-'))
afterEach(() => vi.useRealTimers())
afterAll(() => rmSync(directory, { recursive: true }))
const path = join(directory, 'large')
writeFileSync(path, '')
truncateSync(path, 1_000_000)

/** The line of a transfer on an output, and what was written there. */
function transferOn(isTTY: boolean, isWanted = true): { readonly line: TransferLine; readonly written: () => string } {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 100 })
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const { signal } = new AbortController()
  const output = new Output(stream as unknown as NodeJS.WriteStream, signal, () => {})
  const context = { stdout: output, stderr: output, signal, isStdoutClosed: () => false, env: {}, engines: {} }
  const files = { small: 'text', large: { path, mode: 0o755 } }
  return { line: new TransferLine(files, context, isWanted), written: () => text }
}

/** The pieces of the large file, as a library takes them. */
function piecesOf({ files }: TransferLine): AsyncIterator<Uint8Array> {
  const { large } = files
  if (typeof large !== 'object' || !('stream' in large)) throw new Error('the file is not counted')
  expect(large).toMatchObject({ mode: 0o755, size: 1_000_000 })
  return large.stream[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
}

test('a terminal shows how much was sent once that takes long, and nothing is left of it at the end', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { line, written } = transferOn(true)
  const pieces = piecesOf(line)
  await vi.advanceTimersByTimeAsync(2000) // nothing is sent yet
  for (let n = 0; n < 2; n += 1) await pieces.next()
  await vi.advanceTimersByTimeAsync(400)
  expect(written()).toBe('')
  await vi.advanceTimersByTimeAsync(400)
  expect(written()).toContain('sending files, 0.3 of 1.0 MB')
  while ((await pieces.next()).done !== true);
  await vi.advanceTimersByTimeAsync(200)
  expect(written().endsWith('\r\u001B[2K')).toBe(true)
  await line[Symbol.asyncDispose]()
})

test('a short transfer shows nothing', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const { line, written } = transferOn(true)
  const pieces = piecesOf(line)
  while ((await pieces.next()).done !== true) await vi.advanceTimersByTimeAsync(100)
  await vi.advanceTimersByTimeAsync(1000)
  await line[Symbol.asyncDispose]()
  expect(written()).toBe('')
})

test('files that come out are counted, and said once that takes long', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const arrivals = new Arrivals()
  const take = (size: number): void => arrivals.take({ size })
  vi.advanceTimersByTime(2000)
  expect(arrivals.text).toBeUndefined()
  take(3_000_000)
  vi.advanceTimersByTime(499)
  expect(arrivals.text).toBeUndefined()
  take(500_000)
  vi.advanceTimersByTime(1)
  expect(arrivals.text).toBe('receiving files, 2 files with 3.5 MB so far')
})

test('a pipe, or a program that reads the output, gets none of it, and the files as they are', async () => {
  for (const { line, written } of [transferOn(false), transferOn(true, false)]) {
    expect(line.files).toEqual({ small: 'text', large: { path, mode: 0o755 } })
    await line[Symbol.asyncDispose]()
    expect(written()).toBe('')
  }
})
