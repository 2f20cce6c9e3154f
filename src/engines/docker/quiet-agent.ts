import { Agent as HttpAgent, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'

const KEEP_ALIVE_MS = 30_000

/**
 * Makes an agent whose connections do not keep the host's process alive: while a caller waits, the timer of the call does. It
 * also keeps the client from following redirects, which a daemon never sends: an error of the second request would end
 * the host's process, because the client listens to the first request only.
 */
export function makeQuietAgent(protocol: 'http' | 'https'): HttpAgent | HttpsAgent {
  return protocol === 'https' ? new QuietHttpsAgent() : new QuietHttpAgent()
}

class QuietHttpAgent extends HttpAgent {
  override createConnection(...given: Parameters<HttpAgent['createConnection']>): Duplex | null | undefined {
    return unrefSocket(super.createConnection(...given))
  }

  addRequest(request: ClientRequest, ...given: unknown[]): void {
    ignoreRedirects(request)
    superRequest(HttpAgent.prototype).call(this, request, ...given)
  }

  [inspect.custom](): string {
    return NOT_INSPECTED
  }
}

class QuietHttpsAgent extends HttpsAgent {
  override createConnection(...given: Parameters<HttpsAgent['createConnection']>): Duplex | null | undefined {
    return unrefSocket(super.createConnection(...given))
  }

  addRequest(request: ClientRequest, ...given: unknown[]): void {
    ignoreRedirects(request)
    superRequest(HttpsAgent.prototype).call(this, request, ...given)
  }

  [inspect.custom](): string {
    return NOT_INSPECTED
  }
}

/** Hides the agent from `util.inspect`: the client inspects its options at every request, which took 0.5 s with 50 connections. */
const NOT_INSPECTED = 'an agent of sandglass'

type AddRequest = (this: HttpAgent, request: ClientRequest, ...given: unknown[]) => void

/** The members of an agent that the types of Node lack. */
function superRequest(prototype: HttpAgent): AddRequest {
  return (prototype as unknown as { addRequest: AddRequest }).addRequest
}

function ignoreRedirects(request: ClientRequest): void {
  request.prependListener('response', (response: IncomingMessage) => {
    delete response.headers.location
  })
}

function unrefSocket<T extends Duplex | null | undefined>(connection: T): T {
  const socket = connection as
    | { unref?: () => void; setKeepAlive?: (on: boolean, ms: number) => void }
    | null
    | undefined
  socket?.unref?.()
  // A machine that disappeared sends nothing: without keep-alive a connection would wait for it forever.
  socket?.setKeepAlive?.(true, KEEP_ALIVE_MS)
  return connection
}
