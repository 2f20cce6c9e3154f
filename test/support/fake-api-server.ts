import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The answer to a request. `'never'` leaves it open. */
export type FakeAnswer =
  | { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }
  | 'never'

/** A server that answers like the API server of Kubernetes, as a test says. It runs no pods. */
export class FakeApiServer implements AsyncDisposable {
  readonly #folder = mkdtempSync(join(tmpdir(), 'sandglass-unit-'))
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  /** The path of a kubeconfig for it. */
  readonly kubeconfig: string = join(this.#folder, 'config')
  /** The times of all requests, and what they were. */
  readonly requests: { readonly atMs: number; readonly text: string }[] = []
  /** Answers a request, or refuses one for a WebSocket. */
  answer: (request: IncomingMessage) => FakeAnswer = () => ({ status: 404, body: { message: 'not found' } })

  constructor() {
    this.#server = createServer((request, response) => {
      const answer = this.#take(request)
      if (answer === 'never') return
      response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
      response.end(JSON.stringify(answer.body ?? {}))
    })
    this.#server.on('upgrade', (request, socket) => {
      const answer = this.#take(request)
      if (answer === 'never') return
      const body = JSON.stringify(answer.body ?? {})
      const lines = Object.entries({ 'content-length': body.length, ...answer.headers })
      const head = lines.map(([name, value]) => `${name}: ${value}`).join('\r\n')
      socket.end(`HTTP/1.1 ${answer.status} Refused\r\n${head}\r\n\r\n${body}`)
    })
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Starts one. */
  static async start(): Promise<FakeApiServer> {
    const server = new FakeApiServer()
    server.#server.listen(0, '127.0.0.1')
    await once(server.#server, 'listening')
    server.writeConfig('first')
    return server
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Writes the kubeconfig again, with another token, and perhaps for another server. */
  writeConfig(token: string, server: string = this.address): void {
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'c', cluster: { server, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'u', user: { token } }],
      contexts: [{ name: 'x', context: { cluster: 'c', user: 'u' } }],
      'current-context': 'x',
    }
    writeFileSync(this.kubeconfig, JSON.stringify(config))
  }

  /** The largest number of requests within any one second. */
  busiestSecond(): number {
    const times = this.requests.map(({ atMs }) => atMs)
    return Math.max(0, ...times.map((from) => times.filter((atMs) => atMs >= from && atMs < from + 1000).length))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
    rmSync(this.#folder, { recursive: true })
  }

  #take(request: IncomingMessage): FakeAnswer {
    const { method = '', url = '' } = request
    this.requests.push({ atMs: performance.now(), text: `${method} ${url}` })
    request.resume()
    return this.answer(request)
  }
}
