import { connect as connectTcp, isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type * as WebSocketModule from 'ws'
import { messageOf, SandglassError } from '../errors/index.ts'
import { CAPS } from '../protocol/index.ts'

/** The place in the sandbox at which the host connects for the tool calls of a run. */
export interface ToolEndpoint {
  /** The address in the sandbox at which the harness listens. */
  readonly host: string
  /** Opens a connection to a port there. */
  readonly connect: (port: number) => Duplex
}

/** The owner of a connection. */
interface ConnectionHandler {
  /** Takes a message. No further one is read until `resume`. */
  readonly onMessage: (bytes: Buffer) => void
  readonly onClose: () => void
}

const HANDSHAKE_MS = 10_000
/** A harness sends each message in one frame; more are allowed, but no flood. */
const MAX_FRAGMENTS = 64
const MAX_REASON_CHARS = 300

/** An endpoint at a network address. @throws SandglassError `websocket_unreachable` if it is not an IP address. */
export function endpointAt(address: string): ToolEndpoint {
  if (isIP(address) === 0)
    throw unreachable(
      `the engine gives ${JSON.stringify(address)} as the address of the sandbox, which is not an IP address`,
    )
  return { host: address, connect: (port) => connectTcp({ host: address, port }) }
}

/** The error for sandboxes whose ports the host cannot reach. */
export function unreachable(reason: string): SandglassError {
  return new SandglassError('websocket_unreachable', `toolTransport: ${reason}. The transport stdio needs no port`)
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
      // A harness sends no pings, and the pongs for a flood of them would accumulate here.
      autoPong: false,
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    socket.once('open', resolve)
    socket.on('error', (error) => reject(connectionError(messageOf(error))))
    socket.once('close', () => {
      reject(connectionError('the endpoint closed the connection'))
      stream.destroy()
      onClose()
    })
    socket.on('ping', () => socket.close(1008, 'no ping is expected'))
    socket.on('message', (data, isBinary) => {
      if (socket.readyState !== WebSocket.OPEN) return
      if (isBinary) return socket.close(1003, 'only text is expected')
      // With the default `binaryType`, every message is a Buffer.
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

  /** Sends a line. Resolves when it is written, or the connection is closed. Never rejects. */
  send(line: Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.send(line, { binary: false }, () => resolve())
    })
  }

  /** Reads the next messages. */
  resume(): void {
    this.#socket.resume()
  }

  /** Closes the connection and gives the script the reason. */
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
      { cause: error },
    )
  }
}

/** The error for an endpoint to which the host cannot connect. The reason may come from the sandbox, so it is cut. */
export function connectionError(reason: string): SandglassError {
  return new SandglassError(
    'websocket_failed',
    `the script did not run, because the host could not connect to its WebSocket: ${reason.slice(0, MAX_REASON_CHARS)}; run it again`,
  )
}
