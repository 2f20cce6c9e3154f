import { connect as connectTcp, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type * as WebSocketModule from 'ws'
import { messageOf, SandglassError } from '../errors/index.ts'
import { CAPS } from '../protocol/index.ts'

/** The place at which the tools of a run are called, if not over the channel of its sandbox. */
export interface ToolEndpoint {
  /** The address in the sandbox at which the harness listens. */
  readonly host: string
  /** Opens a connection to a port there. */
  readonly connect: (port: number) => Duplex
}

/** The owner of a connection. */
interface ConnectionHandler {
  /** A message, which must be read later. Nothing more is read until `resume`. */
  readonly onMessage: (bytes: Buffer) => void
  readonly onClose: () => void
}

const HANDSHAKE_MS = 10_000
/** A harness sends each message as one frame. */
const MAX_FRAGMENTS = 64
const MAX_ANSWER_CHARS = 300

/** An endpoint at an address of the network. @throws SandglassError `websocket_unreachable` for what is no IP address. */
export function endpointAt(address: string): ToolEndpoint {
  if (isIP(address) === 0)
    throw unreachable(
      `the engine gives ${JSON.stringify(address)} as the address of the sandbox, which is no IP address`,
    )
  return { host: address, connect: (port) => connectTcp({ host: address, port }) }
}

/** The error for sandboxes whose ports the host cannot reach. */
export function unreachable(reason: string): SandglassError {
  return new SandglassError('websocket_unreachable', `toolTransport: ${reason}; use stdio, which needs no port`)
}

/** The connection to the endpoint of a run. */
export class ToolConnection {
  readonly #socket: WebSocketModule.WebSocket

  private constructor(socket: WebSocketModule.WebSocket) {
    this.#socket = socket
  }

  /**
   * Connects to a port and proves the token.
   * @throws SandglassError `websocket_failed`.
   */
  static async open(
    { connect }: ToolEndpoint,
    port: number,
    token: string,
    { onMessage, onClose }: ConnectionHandler,
  ): Promise<ToolConnection> {
    const { WebSocket } = await load()
    const stream = connect(port)
    const socket = new WebSocket('ws://sandbox/', {
      createConnection: () => stream,
      headers: { authorization: `Bearer ${token}` },
      handshakeTimeout: HANDSHAKE_MS,
      followRedirects: false,
      perMessageDeflate: false,
      maxPayload: CAPS.argBytes + CAPS.callHeadBytes,
      maxFragments: MAX_FRAGMENTS,
      // A harness sends no ping, and answers to a flood of them would gather here.
      autoPong: false,
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.once('open', resolve)
    socket.on('error', (error) => reject(failed(messageOf(error))))
    socket.once('close', () => {
      reject(failed('the connection ended before it was open'))
      stream.destroy()
      onClose()
    })
    socket.on('ping', () => socket.close(1008, 'no ping is expected'))
    socket.on('message', (data, isBinary) => {
      if (socket.readyState !== WebSocket.OPEN) return
      if (isBinary) return socket.close(1003, 'only text is expected')
      // With this binaryType every message is a Buffer.
      onMessage(data as Buffer)
      socket.pause()
    })
    try {
      await promise
    } catch (error) {
      socket.terminate()
      stream.destroy()
      throw error
    }
    return new ToolConnection(socket)
  }

  /** Sends a line. Resolves when it is on its way, or the connection is gone. */
  send(line: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.send(line, { binary: false }, () => resolve())
    })
  }

  /** Reads the next messages. */
  resume(): void {
    this.#socket.resume()
  }

  /** Ends the connection and tells the script why. */
  refuse(reason: string): void {
    this.#socket.close(1008, reason)
  }

  /** Ends the connection at once. Idempotent. */
  end(): void {
    this.#socket.terminate()
  }
}

/** @throws SandglassError `websocket_client_missing` */
export async function assertWebSocketClient(): Promise<void> {
  await load()
}

async function load(): Promise<typeof WebSocketModule> {
  try {
    return await import('ws')
  } catch (error) {
    throw new SandglassError(
      'websocket_client_missing',
      'toolTransport: websocket needs the package ws: npm install ws',
      {
        cause: error,
      },
    )
  }
}

/** The error of a connection that does not come about. What the sandbox says is cut. */
export function failed(reason: string): SandglassError {
  return new SandglassError(
    'websocket_failed',
    `the host could not connect to the script over a WebSocket: ${reason.slice(0, MAX_ANSWER_CHARS)}`,
  )
}
