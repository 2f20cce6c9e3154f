import type { RunState } from './run-state.ts'
import type { GuestProcess } from './guest-interface.ts'

/**
 * Reads the output of a script: frames, stdout, stderr.
 * @param onTaken called after each chunk.
 * @returns a promise that resolves when all streams are closed.
 */
export async function listen(guest: GuestProcess, state: RunState, onTaken: () => void): Promise<void> {
  const [stdout, stderr] = state.streams
  const takers = [
    [guest.frames, (chunk: Uint8Array) => state.takeFrames(chunk)],
    [guest.stdout, (chunk: Uint8Array) => stdout.take(chunk)],
    [guest.stderr, (chunk: Uint8Array) => stderr.take(chunk)],
  ] as const
  const closed = takers.map(([stream, take]) => {
    stream.on('data', (chunk: Uint8Array) => {
      take(chunk)
      onTaken()
    })
    const { promise, resolve } = Promise.withResolvers<void>()
    stream.once('close', resolve)
    return promise
  })
  await Promise.all(closed)
  for (const stream of state.streams) stream.end()
}
