import type { Duplex } from 'node:stream'
import { messageOf } from '../../errors/index.ts'
import { Demultiplexer } from './demultiplexer.ts'
import type { Attached } from './managed-container.ts'

const MAX_WORDS = 8192

/**
 * A channel over a connection that Docker attached to a container: its standard input plain, its standard output and
 * error multiplexed. Nothing is read beyond the chunk at hand, so that a sandbox that floods fills its own pipe.
 */
export function attach(socket: Duplex): Attached {
  const demultiplexer = new Demultiplexer()
  const decoder = new TextDecoder()
  const pieces: Uint8Array[] = []
  const { promise: ended, resolve: noteEnd } = Promise.withResolvers<void>()
  let words = ''
  let trouble = ''
  let waiting: ((piece: Uint8Array | null) => void) | undefined
  let over = false

  const end = (): void => {
    over = true
    waiting?.(null)
    waiting = undefined
    noteEnd()
  }
  const deliver = (data: Uint8Array): void => {
    if (waiting === undefined) {
      pieces.push(data)
      return
    }
    const resolve = waiting
    waiting = undefined
    resolve(data)
  }
  socket.on('data', (chunk: Uint8Array) => {
    try {
      for (const { stream, data } of demultiplexer.push(chunk)) {
        if (stream === 'stdout') deliver(data)
        else if (words.length < MAX_WORDS) words += decoder.decode(data, { stream: true })
      }
    } catch (error) {
      trouble = messageOf(error)
      socket.destroy() // nothing that follows can be trusted
      return
    }
    if (pieces.length > 0) socket.pause()
  })
  socket.once('end', () => {
    if (!demultiplexer.isWhole) trouble ||= 'the connection ended in the middle of a piece'
  })
  for (const event of ['end', 'close', 'error']) socket.once(event, end)
  socket.on('error', () => {}) // told by send() and by the end
  ;(socket as { unref?: () => void }).unref?.()

  return {
    channel: {
      receive() {
        const piece = pieces.shift()
        if (piece !== undefined) return Promise.resolve(piece)
        if (over) return Promise.resolve(null)
        return new Promise((resolve) => {
          waiting = resolve
          if (socket.isPaused()) socket.resume()
        })
      },
      send(bytes) {
        return new Promise((resolve, reject) => {
          socket.write(bytes, (error) => (error === null || error === undefined ? resolve() : reject(error)))
        })
      },
      close() {
        socket.destroy()
        end()
      },
    },
    lastWords: () => [words.slice(0, MAX_WORDS), trouble].filter((text) => text !== '').join('\n'),
    ended,
  }
}
