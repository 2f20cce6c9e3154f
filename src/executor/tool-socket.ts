import type { SandglassError } from '../errors/index.ts'
import { CAPS, decodeLine, type HarnessFrame, type ToolCallFrame } from '../protocol/index.ts'
import type { Interrupt } from './interrupt.ts'
import { ServerMarker } from './server-marker.ts'
import { connectionError, ToolConnection, type ToolEndpoint } from './tool-endpoint.ts'

/**
 * Time for the endpoint of a run to name its port and to accept the connection after the request is sent. The harness gives up after
 * 10 s, so the host has read its failure before its own time is over.
 */
const CONNECT_MS = 15_000
/** Maximum values of a call: its arguments and its other fields. */
const MAX_CALL_PARTS = CAPS.argParts + 32

/** The owner of the WebSocket of a run. */
interface SocketHandler {
  /** Called when messages have arrived. */
  readonly onMessages: () => void
  /** Called once, when the connection delivers no further call. */
  readonly onClose: () => void
}

/** A tool call, and the bytes of its message. */
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
  /** Messages that {@link calls} has not yielded yet. */
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

  /** Starts the time limit of the connection after the request is sent. @param onLate called if the connection is not open in time. */
  limitConnect(onLate: (error: SandglassError) => void): void {
    if (this.#marker === undefined || this.#over.signal.aborted) return
    this.#timer = setTimeout(
      () => onLate(connectionError(`the endpoint accepted no connection within ${CONNECT_MS} ms`)),
      CONNECT_MS,
    )
  }

  /**
   * Adds a piece of the beginning of stdout.
   * @returns the port, once its line is complete, and the output after that line.
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
    // A connection that opens after the end of the run is closed.
    this.#connection = await interrupt.wait(opening).catch((error: unknown) => {
      void opening.then((late) => late.end()).catch(() => undefined)
      throw error
    })
    this.#marker = undefined
    clearTimeout(this.#timer)
  }

  /** Yields the calls that arrived. Any other message closes the connection. Reading continues after the last call is yielded. */
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

  /** Sends a line, which is encoded when its turn comes. Never rejects. */
  async send(makeLine: () => Uint8Array): Promise<void> {
    await this.#connection?.send(makeLine)
  }

  /** Ends the connection. A connection that is being opened is not affected. */
  end(): void {
    this.#connection?.end()
  }

  /** Ends the connection, or the attempt to connect, at the end of the run. */
  close(): void {
    clearTimeout(this.#timer)
    this.#over.abort()
    this.end()
  }
}

/** True for a tool call of this run. A call with another id counts as output, like everything that a harness never sends. */
export function isCallOf(executionId: string, frame: HarnessFrame): frame is ToolCallFrame {
  return frame.type === 'tool_call' && frame.execution_id === executionId
}
