import type { Duplex } from 'node:stream'
import { messageOf } from '../../errors/index.ts'
import { ChunkQueue } from '../../sandbox/index.ts'
import { Demultiplexer } from './demultiplexer.ts'
import type { Attached } from './managed-container.ts'

const MAX_WORDS = 8192

/**
 * A channel over a connection that Docker attached to a container: its standard input plain, its standard output and
 * error multiplexed. It reads one chunk ahead, so that a sandbox that floods fills its own pipe.
 */
export function attach(socket: Duplex): Attached {
  const demultiplexer = new Demultiplexer()
  const decoder = new TextDecoder()
  const pieces = new ChunkQueue()
  const { promise: ended, resolve: noteEnd } = Promise.withResolvers<void>()
  let words = ''
  let trouble = ''

  const end = (): void => {
    pieces.end()
    noteEnd()
  }
  socket.on('data', (chunk: Uint8Array) => {
    try {
      for (const { stream, data } of demultiplexer.push(chunk)) {
        if (stream === 'stdout') pieces.put(data)
        else if (words.length < MAX_WORDS) words += decoder.decode(data, { stream: true })
      }
    } catch (error) {
      trouble = messageOf(error)
      socket.destroy() // the rest cannot be trusted
      return
    }
    if (pieces.holds) socket.pause()
  })
  socket.once('end', () => {
    if (!demultiplexer.isWhole) trouble ||= 'the connection ended in the middle of a piece'
  })
  for (const event of ['end', 'close', 'error']) socket.once(event, end)
  socket.on('error', () => {}) // send() and the end of the stream report it
  ;(socket as { unref?: () => void }).unref?.()

  return {
    channel: {
      receive() {
        const piece = pieces.take()
        if (pieces.isAwaited && socket.isPaused()) socket.resume()
        return piece
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
    lastOutput: () => [words.slice(0, MAX_WORDS), trouble].filter((text) => text !== '').join('\n'),
    ended,
  }
}
