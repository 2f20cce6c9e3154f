import type { Duplex } from 'node:stream'
import { messageOf } from '../../errors/index.ts'
import { type Attached, ChunkQueue } from '../../sandbox/index.ts'
import { Demultiplexer } from './demultiplexer.ts'

const MAX_STDERR_CHARS = 8192

/**
 * A channel over a connection that Docker attached to a container: its standard input plain, its standard output and
 * error multiplexed. It reads one chunk ahead: the back-pressure reaches a sandbox that floods.
 */
export function attach(socket: Duplex): Attached {
  const demultiplexer = new Demultiplexer()
  const decoder = new TextDecoder()
  const pieces = new ChunkQueue()
  const { promise: ended, resolve: noteEnd } = Promise.withResolvers<void>()
  let stderr = ''
  let failure = ''

  const end = (): void => {
    pieces.end()
    noteEnd()
  }
  socket.on('data', (chunk: Uint8Array) => {
    try {
      for (const { stream, data } of demultiplexer.push(chunk)) {
        if (stream === 'stdout') pieces.put(data)
        else if (stderr.length < MAX_STDERR_CHARS) stderr += decoder.decode(data, { stream: true })
      }
    } catch (error) {
      failure = messageOf(error)
      socket.destroy() // the rest cannot be trusted
      return
    }
    if (pieces.holds) socket.pause()
  })
  socket.once('end', () => {
    if (!demultiplexer.isWhole) failure ||= 'the connection to the container ended in the middle of a frame'
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
    lastOutput: () => [stderr.slice(0, MAX_STDERR_CHARS), failure].filter((text) => text !== '').join('\n'),
    ended,
  }
}
