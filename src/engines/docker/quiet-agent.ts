import { Agent as HttpAgent, type ClientRequest, type IncomingMessage } from 'node:http'
import { Agent as HttpsAgent } from 'node:https'
import type { Duplex } from 'node:stream'
import { inspect } from 'node:util'

const KEEP_ALIVE_MS = 30_000

/**
 * An agent whose connections do not keep the host's process alive: a call that somebody waits for has a timer that does.
 * Nor does it let the client follow redirections, which a daemon has none of: what fails on the way there ends the host's
 * process, because the client listens to the first request only.
 */
export function quietAgent(protocol: 'http' | 'https'): HttpAgent | HttpsAgent {
  return protocol === 'https' ? new QuietHttpsAgent() : new QuietHttpAgent()
}

class QuietHttpAgent extends HttpAgent {
  override createConnection(...given: Parameters<HttpAgent['createConnection']>): Duplex | null | undefined {
    return quiet(super.createConnection(...given))
  }

  addRequest(request: ClientRequest, ...given: unknown[]): void {
    shutRedirections(request)
    superRequest(HttpAgent.prototype).call(this, request, ...given)
  }

  [inspect.custom](): string {
    return NOT_INSPECTED
  }
}

class QuietHttpsAgent extends HttpsAgent {
  override createConnection(...given: Parameters<HttpsAgent['createConnection']>): Duplex | null | undefined {
    return quiet(super.createConnection(...given))
  }

  addRequest(request: ClientRequest, ...given: unknown[]): void {
    shutRedirections(request)
    superRequest(HttpsAgent.prototype).call(this, request, ...given)
  }

  [inspect.custom](): string {
    return NOT_INSPECTED
  }
}

/** The client inspects its options, with all that hangs on them, at every request: with 50 connections open for 0.5 s each. */
const NOT_INSPECTED = 'an agent of sandglass'

type AddRequest = (this: HttpAgent, request: ClientRequest, ...given: unknown[]) => void

/** What every agent has, and the types of Node leave out. */
function superRequest(prototype: HttpAgent): AddRequest {
  return (prototype as unknown as { addRequest: AddRequest }).addRequest
}

function shutRedirections(request: ClientRequest): void {
  request.prependListener('response', (response: IncomingMessage) => {
    delete response.headers.location
  })
}

function quiet<T extends Duplex | null | undefined>(connection: T): T {
  const socket = connection as
    | { unref?: () => void; setKeepAlive?: (on: boolean, ms: number) => void }
    | null
    | undefined
  socket?.unref?.()
  // A machine that vanished says nothing: without this, a connection that waits for it waits for ever.
  socket?.setKeepAlive?.(true, KEEP_ALIVE_MS)
  return connection
}
