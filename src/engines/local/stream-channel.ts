import type { Readable, Writable } from 'node:stream'
import { type Channel, ChunkQueue } from '../../sandbox/index.ts'

/** A channel over the two pipes of a child process. Reads at most one chunk ahead. */
export function streamChannel(input: Readable, output: Writable): Channel {
  const chunks = new ChunkQueue()
  input.on('data', (chunk: Uint8Array) => {
    chunks.put(chunk)
    if (chunks.holds) input.pause()
  })
  for (const event of ['end', 'close', 'error']) input.once(event, () => chunks.end())
  output.on('error', () => {}) // send() and the end of the input report a dead peer

  return {
    receive() {
      const chunk = chunks.take()
      if (chunks.isAwaited && input.isPaused()) input.resume()
      return chunk
    },
    send(bytes) {
      return new Promise((resolve, reject) => {
        output.write(bytes, (error) => (error === null || error === undefined ? resolve() : reject(error)))
      })
    },
    close() {
      output.destroy()
      input.destroy()
      chunks.end()
    },
  }
}
