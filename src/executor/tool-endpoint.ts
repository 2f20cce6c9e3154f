import { BlockList, connect as connectTcp, isIP } from 'node:net'
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
  /** Called with a message. No further message is read until `resume`. */
  readonly onMessage: (bytes: Buffer) => void
  /** Called once, when no further message follows: the connection has ended, or is being closed. */
  readonly onClose: () => void
}

const LIMITS = {
  maxPayload: CAPS.argBytes + CAPS.callHeadBytes,
  /** Maximum frames of a message. A harness sends each message in one frame. */
  maxFragments: 64,
  /** Maximum pieces in which a message arrives: the time of `ws` is quadratic in their number. */
  maxBufferedChunks: 8192,
  /** The time for the other side to close as well, in milliseconds. */
  closeTimeout: 1000,
} as const
const MAX_REASON_CHARS = 300

/** Addresses at which the host would reach itself, or its own link. The sandbox names the port. */
const NOT_A_SANDBOX = new BlockList()
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
] as const)
  NOT_A_SANDBOX.addSubnet(network, bits, 'ipv4')
for (const [network, bits] of [
  ['::', 127],
  ['fe80::', 10],
] as const)
  NOT_A_SANDBOX.addSubnet(network, bits, 'ipv6')

/**
 * An endpoint at a network address.
 * @throws SandglassError `websocket_unreachable` if it is not an IP address, or is one of the host's own.
 */
export function endpointAt(address: string): ToolEndpoint {
  const family = isIP(address)
  const given = `the engine returned ${JSON.stringify(address)} as the address of the sandbox`
  if (family === 0) throw unreachable(`${given}, which is not an IP address`)
  if (NOT_A_SANDBOX.check(address, family === 4 ? 'ipv4' : 'ipv6'))
    throw unreachable(`${given}, which is a loopback or link-local address of the host`)
  return { host: address, connect: (port) => connectTcp({ host: address, port }) }
}

/** The error for sandboxes whose ports the host cannot reach. */
export function unreachable(reason: string): SandglassError {
  return new SandglassError(
    'websocket_unreachable',
    `toolTransport: ${reason}. Use the transport stdio, which needs no port`,
  )
}

/** The connection to the endpoint of a run. */
export class ToolConnection {
  readonly #socket: WebSocketModule.WebSocket
  #sent: Promise<void> = Promise.resolve()
  readonly #refuse: (code: number, reason: string) => void

  private constructor(socket: WebSocketModule.WebSocket, refuse: (code: number, reason: string) => void) {
    this.#socket = socket
    this.#refuse = refuse
  }

  /**
   * Connects to a port and presents the token.
   * @param signal ends the attempt, which has no other time limit.
   * @throws SandglassError `websocket_failed`.
   */
  static async open(
    { connect }: ToolEndpoint,
    port: number,
    token: string,
    { onMessage, onClose }: ConnectionHandler,
    signal: AbortSignal,
  ): Promise<ToolConnection> {
    const { WebSocket } = await load()
    const stream = connect(port)
    const socket = new WebSocket('ws://sandbox/', {
      ...LIMITS,
      createConnection: () => stream,
      headers: { authorization: `Bearer ${token}` },
      followRedirects: false,
      perMessageDeflate: false,
      // A harness sends no pings, and the pongs for a flood of them would accumulate here.
      autoPong: false,
    })
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    let isOver = false
    const end = (): void => {
      if (isOver) return
      isOver = true
      onClose()
    }
    const refuse = (code: number, reason: string): void => {
      if (isOver) return
      socket.close(code, reason)
      // Continues to read until the other side closes, and drops its messages.
      socket.resume()
      end()
    }
    socket.once('open', resolve)
    socket.on('error', (error) => {
      reject(connectionError(messageOf(error)))
      end()
    })
    socket.once('close', () => {
      reject(connectionError('the endpoint closed the connection'))
      stream.destroy()
      end()
    })
    socket.on('ping', () => refuse(1008, 'no ping is expected'))
    socket.on('pong', () => refuse(1008, 'no pong is expected'))
    socket.on('message', (data, isBinary) => {
      if (isOver) return
      if (isBinary) return refuse(1003, 'only text is expected')
      // With the default `binaryType`, every message is a Buffer.
      onMessage(data as Buffer)
      socket.pause()
    })
    const onAbort = (): void => reject(connectionError('the run has ended'))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      await promise
    } catch (error) {
      socket.terminate()
      stream.destroy()
      throw error
    } finally {
      signal.removeEventListener('abort', onAbort)
    }
    return new ToolConnection(socket, refuse)
  }

  /**
   * Sends a line, which is encoded after the lines before it are written. Resolves when it is written, or the connection is closed.
   * Never rejects.
   */
  send(makeLine: () => Uint8Array): Promise<void> {
    this.#sent = this.#sent.then(() => this.#send(makeLine))
    return this.#sent
  }

  /** Reads the next messages. */
  resume(): void {
    this.#socket.resume()
  }

  /** Closes the connection and sends the reason to the script. */
  refuse(reason: string): void {
    this.#refuse(1008, reason)
  }

  /** Ends the connection at once. Idempotent. */
  end(): void {
    this.#socket.terminate()
  }

  #send(makeLine: () => Uint8Array): Promise<void> {
    if (this.#socket.readyState !== this.#socket.OPEN) return Promise.resolve()
    return new Promise((resolve) => {
      this.#socket.send(makeLine(), { binary: false }, () => resolve())
    })
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

/** Creates the error for an endpoint to which the host cannot connect. The reason may come from the sandbox, so it is truncated. */
export function connectionError(reason: string): SandglassError {
  return new SandglassError(
    'websocket_failed',
    `the script did not run, because the host could not connect to its WebSocket: ${reason.slice(0, MAX_REASON_CHARS)}; run it again`,
  )
}
