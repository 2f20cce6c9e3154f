import type { BrokerRun } from './broker-run.ts'
import type { GuestProcess } from './guest-interface.ts'

/**
 * Takes what the script of a guest says: frames, stdout, stderr.
 * @param onTaken called behind each piece.
 * @returns resolves when nothing more comes.
 */
export async function listen(guest: GuestProcess, run: BrokerRun, onTaken: () => void): Promise<void> {
  const [stdout, stderr] = run.streams
  const takers = [
    [guest.frames, (chunk: Uint8Array) => run.takeFrames(chunk)],
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
  for (const stream of run.streams) stream.end()
}
