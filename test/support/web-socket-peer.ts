import { createHash } from 'node:crypto'
import { type Duplex, duplexPair } from 'node:stream'
import type { ToolEndpoint } from '../../src/executor/index.ts'

/** An endpoint of tool calls whose connections are in memory. */
export interface EndpointInMemory extends ToolEndpoint {
  /** The ports that the host asked for. */
  readonly ports: readonly number[]
  /** The host's sides of the connections. */
  readonly streams: readonly Duplex[]
}

/** An endpoint that does this when the request of the client arrives. */
export function endpointThat(act: (peer: Duplex, request: Buffer) => void | Promise<void>): EndpointInMemory {
  const ports: number[] = []
  const streams: Duplex[] = []
  return {
    host: '127.0.0.1',
    ports,
    streams,
    connect: (port) => {
      ports.push(port)
      const [near, far] = duplexPair()
      streams.push(near)
      far.on('error', () => {})
      far.once('data', (request: Buffer) => void act(far, request))
      // HTTP clients call these of sockets.
      return Object.assign(near, { setTimeout: () => near, setKeepAlive: () => near, setNoDelay: () => near })
    },
  }
}

/** The answer that accepts the request of a client. */
export function acceptanceOf(request: Buffer): string {
  const [, key = ''] = /Sec-WebSocket-Key: (\S+)/i.exec(request.toString()) ?? []
  const accept = createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')
  const fields = ['Upgrade: websocket', 'Connection: Upgrade', `Sec-WebSocket-Accept: ${accept}`]
  return ['HTTP/1.1 101 Switching Protocols', ...fields, '', ''].join('\r\n')
}

/** A message of a server, which is not masked, in one frame. */
export function messageOf(text: string): Buffer {
  const payload = Buffer.from(text)
  const head = Buffer.alloc(10)
  head.writeUInt8(0x81, 0)
  head.writeUInt8(127, 1)
  head.writeBigUInt64BE(BigInt(payload.length), 2)
  return Buffer.concat([head, payload])
}
