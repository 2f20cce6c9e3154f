import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request that a {@link ModelServer} received. */
export interface ReceivedRequest {
  readonly method: string | undefined
  readonly path: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: unknown
  /** `performance.now()` of its arrival. */
  readonly at: number
}

/** The answer to a request: a status, headers and a body. */
export type Reply = (response: ServerResponse) => void

/** A server on 127.0.0.1 that gives these replies in order and repeats the last one. */
export interface ModelServer extends AsyncDisposable {
  readonly url: string
  readonly asked: readonly ReceivedRequest[]
}

export async function modelServer(...replies: readonly [Reply, ...Reply[]]): Promise<ModelServer> {
  const asked: ReceivedRequest[] = []
  const server = createServer((request, response) => void serve(request, response))
  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const at = performance.now()
    const chunks: Uint8Array[] = []
    for await (const chunk of request) chunks.push(chunk as Uint8Array)
    const { method, url: path, headers } = request
    const reply = replies[Math.min(asked.length, replies.length - 1)]
    asked.push({ method, path, headers, body: JSON.parse(Buffer.concat(chunks).toString()), at })
    reply?.(response)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

/** Answers with JSON, or with an unchanged text. */
export function reply(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return (response) => {
    response.writeHead(status, headers).end(typeof body === 'string' ? body : JSON.stringify(body))
  }
}

/** Answers with a body of 1024 pieces of this size, as fast as it is read; `pieces` counts the sent ones. */
export function flood(status: number, pieceBytes: number): { readonly reply: Reply; pieces(): number } {
  let sent = 0
  return {
    pieces: () => sent,
    reply(response) {
      const more = (): void => {
        while (!response.destroyed && sent < 1024) {
          sent += 1
          if (!response.write(Buffer.alloc(pieceBytes, 'x'))) {
            response.once('drain', more)
            return
          }
        }
      }
      response.writeHead(status)
      more()
    },
  }
}

/** The answer of a provider to a prompt. */
export const ANSWER: Readonly<Record<string, unknown>> = {
  model: 'coder-1-2026',
  choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'emit_result(1)' } }],
  usage: { prompt_tokens: 11, completion_tokens: 4, total_tokens: 15 },
}
