import type { Readable, Writable } from 'node:stream'
import type { Channel } from '../../sandbox/index.ts'

/** A channel over the two pipes of a child process. Reads one chunk ahead of demand, not more. */
export function streamChannel(input: Readable, output: Writable): Channel {
  const chunks: Uint8Array[] = []
  let waiting: ((chunk: Uint8Array | null) => void) | undefined
  let ended = false

  const end = (): void => {
    ended = true
    waiting?.(null)
    waiting = undefined
  }
  input.on('data', (chunk: Uint8Array) => {
    if (waiting !== undefined) {
      const resolve = waiting
      waiting = undefined
      resolve(chunk)
      return
    }
    chunks.push(chunk)
    input.pause()
  })
  for (const event of ['end', 'close', 'error']) input.once(event, end)
  output.on('error', () => {}) // a dead peer is told by send() and by the end of the input

  return {
    receive() {
      const chunk = chunks.shift()
      if (chunk !== undefined) return Promise.resolve(chunk)
      if (ended) return Promise.resolve(null)
      return new Promise((resolve) => {
        waiting = resolve
        if (input.isPaused()) input.resume()
      })
    },
    send(bytes) {
      return new Promise((resolve, reject) => {
        output.write(bytes, (error) => (error === null || error === undefined ? resolve() : reject(error)))
      })
    },
    close() {
      output.destroy()
      input.destroy()
      end()
    },
  }
}
