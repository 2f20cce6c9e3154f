import type { SandglassError } from '../errors/index.ts'
import { CAPS, decodeLine, type HarnessFrame, type ToolCallFrame } from '../protocol/index.ts'
import type { Interrupt } from './interrupt.ts'
import { ServerMarker } from './server-marker.ts'
import { connectionError, ToolConnection, type ToolEndpoint } from './tool-endpoint.ts'

/**
 * Time for the endpoint of a run to name its port and to accept the connection, once the request is sent. The harness waits for 10 s, so
 * the host has read its answer before it gives up: a run that fails has not begun.
 */
const CONNECT_MS = 15_000
/** The values of a call: its arguments and its other fields. */
const MAX_CALL_PARTS = CAPS.argParts + 32

/** The owner of the WebSocket of a run. */
interface SocketHandler {
  /** Messages are there to be taken. */
  readonly onMessages: () => void
  /** Called once: the connection takes no further call. */
  readonly onClose: () => void
}

/** A call of a tool, and the bytes that it came in. */
interface ReceivedCall {
  readonly call: ToolCallFrame
  readonly bytes: number
}

/** The WebSocket of the tool calls of one run: its port is read from stdout, then the host connects. */
export class ToolSocket {
  readonly #endpoint: ToolEndpoint & { readonly token: string }
  readonly #executionId: string
  readonly #handler: SocketHandler
  /** Looks for the port, until the connection is open. */
  #marker: ServerMarker | undefined = new ServerMarker()
  #connection: ToolConnection | undefined
  #timer: NodeJS.Timeout | undefined
  readonly #over = new AbortController()
  /** Messages that are not taken yet. */
  #messages: Buffer[] = []

  constructor(endpoint: ToolEndpoint & { readonly token: string }, executionId: string, handler: SocketHandler) {
    this.#endpoint = endpoint
    this.#executionId = executionId
    this.#handler = handler
  }

  get isConnected(): boolean {
    return this.#connection !== undefined
  }

  get hasMessages(): boolean {
    return this.#messages.length > 0
  }

  /** The request is sent. @param onLate called if the connection is not open in time. */
  limitConnect(onLate: (error: SandglassError) => void): void {
    if (this.#marker === undefined || this.#over.signal.aborted) return
    this.#timer = setTimeout(
      () => onLate(connectionError(`the endpoint accepted no connection within ${CONNECT_MS} ms`)),
      CONNECT_MS,
    )
  }

  /**
   * Takes the beginning of stdout, in pieces.
   * @returns the port, once it is complete, and the output after its line.
   * @throws SandglassError `websocket_failed`
   */
  findPort(text: string): { readonly port: number | undefined; readonly rest: string } {
    const found = this.#marker?.push(text)
    if (found === null) throw connectionError('stdout does not begin with the line that names the port of the endpoint')
    return found ?? { port: undefined, rest: '' }
  }

  /** @throws SandglassError `websocket_failed`; EndConversation. */
  async connect(port: number, interrupt: Interrupt): Promise<void> {
    const handler = {
      onMessage: (bytes: Buffer): void => {
        this.#messages.push(bytes)
        this.#handler.onMessages()
      },
      onClose: this.#handler.onClose,
    }
    const opening = ToolConnection.open(this.#endpoint, port, this.#endpoint.token, handler, this.#over.signal)
    // A connection that opens after the end of the run is not kept.
    this.#connection = await interrupt.wait(opening).catch((error: unknown) => {
      void opening.then((late) => late.end()).catch(() => undefined)
      throw error
    })
    this.#marker = undefined
    clearTimeout(this.#timer)
  }

  /** The calls that came. Anything else closes the connection. More is read once all of them were taken. */
  *calls(): Generator<ReceivedCall, void, void> {
    for (let message = this.#messages.shift(); message !== undefined; message = this.#messages.shift()) {
      const decoded = decodeLine(message, MAX_CALL_PARTS)
      if (decoded.kind !== 'frame' || !isCallOf(this.#executionId, decoded.frame)) {
        this.#messages = []
        this.#connection?.refuse('only calls of tools are expected')
        return
      }
      yield { call: decoded.frame, bytes: message.length }
    }
    this.#connection?.resume()
  }

  /** Sends a line, made when its turn comes. Never rejects. */
  async send(makeLine: () => Uint8Array): Promise<void> {
    await this.#connection?.send(makeLine)
  }

  /** Ends the connection. A later one may still open. */
  end(): void {
    this.#connection?.end()
  }

  /** The run is over: ends the connection, or the attempt to connect. */
  close(): void {
    clearTimeout(this.#timer)
    this.#over.abort()
    this.end()
  }
}

/** A call with the id of another run counts as output, like everything that a harness never sends. */
export function isCallOf(executionId: string, frame: HarnessFrame): frame is ToolCallFrame {
  return frame.type === 'tool_call' && frame.execution_id === executionId
}
