import { PassThrough } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import { InstallLine } from '../../../src/cli/install-line.ts'
import { Output } from '../../../src/cli/output.ts'

afterEach(() => vi.useRealTimers())

/** The line of an installation on an output, and what was written there. */
function installOn(isTTY: boolean): { readonly line: InstallLine; readonly written: () => string } {
  const stream = Object.assign(new PassThrough(), { isTTY, columns: 100 })
  let text = ''
  stream.on('data', (chunk: Buffer) => (text += chunk.toString()))
  const { signal } = new AbortController()
  const output = new Output(stream as unknown as NodeJS.WriteStream, signal, () => {})
  const line = new InstallLine({
    stdout: output,
    stderr: output,
    signal,
    isStdoutClosed: () => false,
    env: {},
    engines: {},
  })
  return { line, written: () => text }
}

test('a terminal shows how much of the wheels has arrived, and nothing is left of it at the end', async () => {
  vi.useFakeTimers()
  const { line, written } = installOn(true)
  line.onProgress({ phase: 'installer', packages: 0, bytes: 0, totalBytes: 0 })
  await vi.advanceTimersByTimeAsync(250)
  expect(written()).toContain('downloading uv')
  line.onProgress({ phase: 'resolve', packages: 0, bytes: 0, totalBytes: 0 })
  await vi.advanceTimersByTimeAsync(250)
  expect(written()).toContain('choosing versions of packages')
  line.onProgress({ phase: 'download', packages: 3, bytes: 20e6, totalBytes: 40e6 })
  await vi.advanceTimersByTimeAsync(250)
  expect(written()).toContain(`installing 3 packages [${'#'.repeat(12)}${'.'.repeat(12)}] 20.0 of 40.0 MB`)
  line.onProgress({ phase: 'done', packages: 3, bytes: 40e6, totalBytes: 40e6 })
  await vi.advanceTimersByTimeAsync(250)
  expect(written().endsWith('\r\u001B[2K')).toBe(true)
})

test('a pipe gets none of it', async () => {
  vi.useFakeTimers()
  const { line, written } = installOn(false)
  line.onProgress({ phase: 'download', packages: 3, bytes: 20e6, totalBytes: 40e6 })
  await vi.advanceTimersByTimeAsync(1000)
  await line[Symbol.asyncDispose]()
  expect(written()).toBe('')
})
