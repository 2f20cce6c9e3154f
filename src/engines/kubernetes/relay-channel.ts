import type { RawData, WebSocket } from 'ws'
import type { Socket } from 'node:net'
import { type Attached, ChunkQueue } from '../../sandbox/index.ts'
import { ReceivedMemory } from './received-memory.ts'

const STDIN = 0
const STDOUT = 1
const STDERR = 2
const STATUS = 3
const MAX_STDERR_CHARS = 8192
const PIECE_BYTES = 256 * 1024
const LENGTH_BYTES = 4
const HEARTBEAT_MS = 5000
/** The connection is lost if a server that is read answers this many heartbeats in a row with nothing. */
const UNANSWERED = 4
/** The same while a request waits in it: a busy sandbox reads nothing for a time, and heartbeats wait behind the request. */
const UNANSWERED_WHILE_SENDING = 60

/**
 * A channel over the WebSocket of an `exec`. What it sends carries lengths, because the container beside the sandbox looks for
 * heartbeats; what it receives is as the harness wrote it. It reads one chunk ahead.
 */
export function attach(socket: WebSocket): Attached {
  const pieces = new ChunkQueue()
  const memory = new ReceivedMemory(connectionOf(socket))
  const decoder = new TextDecoder()
  const { promise: ended, resolve: noteEnd } = Promise.withResolvers<void>()
  let stderr = ''
  let status = ''
  let unanswered = 0

  const timer = setInterval(() => {
    if (socket.readyState !== socket.OPEN) return
    // A paused socket reads no answer.
    unanswered = socket.isPaused ? 0 : unanswered + 1
    if (unanswered > (socket.bufferedAmount > 0 ? UNANSWERED_WHILE_SENDING : UNANSWERED)) {
      status ||= 'the API server answered no heartbeat'
      socket.terminate()
      return
    }
    // The server answers a ping behind what waits for this reader, and passes nothing on meanwhile: no heartbeat either.
    if (!socket.isPaused) socket.ping()
    socket.send(frameOf(new Uint8Array()), () => undefined)
  }, HEARTBEAT_MS)
  timer.unref()

  const end = (): void => {
    clearInterval(timer)
    pieces.end()
    noteEnd()
  }
  socket.on('pong', () => {
    unanswered = 0
    memory.forget()
  })
  socket.on('message', (message: RawData) => {
    unanswered = 0
    const bytes = message as Buffer
    const stream = bytes[0] // before own(), which may free the message
    const data = memory.own(bytes)
    if (data.length === 0) return
    if (stream === STDOUT) pieces.put(data)
    else if (stream === STDERR && stderr.length < MAX_STDERR_CHARS) stderr += decoder.decode(data, { stream: true })
    else if (stream === STATUS) status ||= describeStatus(data.toString())
    if (pieces.holds) socket.pause()
  })
  socket.on('error', (error) => (status ||= error.message))
  socket.once('close', end)
  // Lets the host's process end: while a caller waits, the timer of the call keeps it.
  connectionOf(socket).unref()
  socket.resume()

  return {
    channel: {
      async receive() {
        const taking = pieces.take()
        if (pieces.isAwaited && socket.isPaused) socket.resume()
        const piece = await taking
        memory.lend(piece)
        return piece
      },
      release: () => memory.release(),
      send: (bytes) => send(socket, bytes),
      close() {
        socket.terminate()
        end()
      },
    },
    // The program of the `exec` is often killed with its container: that says nothing beside the words of the sandbox.
    lastOutput: () => stderr.slice(0, MAX_STDERR_CHARS) || status,
    ended,
  }
}

function send(socket: WebSocket, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const isLast = at + PIECE_BYTES >= bytes.length
      const done = (error?: Error | null): void => {
        if (error !== null && error !== undefined) reject(error)
        else if (isLast) resolve()
      }
      socket.send(frameOf(bytes.subarray(at, at + PIECE_BYTES)), done)
    }
    if (bytes.length === 0) resolve()
  })
}

/** A piece for the container beside the sandbox; an empty one is a heartbeat. */
function frameOf(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(1 + LENGTH_BYTES + bytes.length)
  frame[0] = STDIN
  frame.writeUInt32BE(bytes.length, 1)
  frame.set(bytes, 1 + LENGTH_BYTES)
  return frame
}

/** The message of a status that is no success. */
function describeStatus(text: string): string {
  try {
    const { status, message } = JSON.parse(text) as { status?: unknown; message?: unknown }
    return status === 'Success' || typeof message !== 'string' ? '' : message.slice(0, MAX_STDERR_CHARS)
  } catch {
    return ''
  }
}

function connectionOf(socket: WebSocket): Socket {
  return (socket as unknown as { readonly _socket: Socket })._socket
}
