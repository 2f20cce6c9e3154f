import { once } from 'node:events'
import { createServer, type IncomingMessage, request as requestHttp, type Server, type ServerResponse } from 'node:http'
import { request as requestHttps } from 'node:https'
import { connect as connectTcp, type AddressInfo, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import type { Duplex } from 'node:stream'
import type { KubernetesEngineOptions } from '../../src/engines/kubernetes/index.ts'
import { changedConfig, trustAnyServer } from './kubernetes-cluster.ts'

/** An answer of its own in the place of the API server's; undefined to pass the request on. */
type Answer = { readonly status: number; readonly message: string } | undefined

/** A proxy in front of the API server, which can do to a host all that a bad day does. The host's own credentials go through. */
export class ApiProxy implements AsyncDisposable {
  readonly #target: URL
  readonly #server: Server
  readonly #sockets = new Set<Duplex>()
  readonly #tunnels: [Duplex, Duplex][] = []
  #port = 0
  /** The times of all requests, and what they were. */
  readonly requests: { readonly atMs: number; readonly text: string }[] = []
  /** Decides about a request before it is passed on. */
  answer: (request: IncomingMessage) => Answer = () => undefined
  /** Resolves when an answer of the API server may go to the host. */
  release: (request: IncomingMessage) => Promise<void> = () => Promise.resolve()

  constructor(target: string) {
    this.#target = new URL(target)
    this.#server = createServer((request, response) => this.#pass(request, response))
    this.#server.on('upgrade', (request, socket, head) => this.#tunnel(request, socket as Socket, head))
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.once('close', () => this.#sockets.delete(socket))
    })
  }

  /** Begins to listen, at the same port each time. */
  async start(): Promise<string> {
    this.#server.listen(this.#port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#port = (this.#server.address() as AddressInfo).port
    return `http://127.0.0.1:${this.#port}`
  }

  /** Ends like a server that is killed: all connections break, and new ones are refused. */
  async stop(): Promise<void> {
    const closed = once(this.#server, 'close')
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
    await closed
  }

  /** From now on nothing comes through the connections of `exec`, and they do not end. */
  freeze(): void {
    for (const [one, other] of this.#tunnels) {
      one.unpipe(other)
      other.unpipe(one)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#server.listening) await this.stop()
  }

  #pass(request: IncomingMessage, response: ServerResponse): void {
    this.#note(request)
    const own = this.answer(request)
    if (own !== undefined) {
      response.writeHead(own.status, { 'content-type': 'application/json' })
      response.end(statusOf(own))
      return
    }
    const send = this.#target.protocol === 'https:' ? requestHttps : requestHttp
    const { hostname, port } = this.#target
    const { method, url: path, headers } = request
    const up = send({ hostname, port, path, method, headers, rejectUnauthorized: false }, (answer) => {
      void this.release(request).then(() => {
        response.writeHead(answer.statusCode ?? 502, answer.headers)
        answer.pipe(response)
      })
    })
    up.on('error', () => response.destroy())
    request.pipe(up)
  }

  #tunnel(request: IncomingMessage, socket: Socket, head: Buffer): void {
    this.#note(request)
    const own = this.answer(request)
    if (own !== undefined) {
      const body = statusOf(own)
      socket.end(`HTTP/1.1 ${own.status} Refused\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      return
    }
    const { hostname, port, protocol } = this.#target
    const to = { host: hostname, port: Number(port) }
    const up = protocol === 'https:' ? connectTls({ ...to, rejectUnauthorized: false }) : connectTcp(to)
    const lines = request.rawHeaders.flatMap((name, place) =>
      place % 2 === 0 ? [`${name}: ${request.rawHeaders[place + 1] ?? ''}`] : [],
    )
    up.write([`${request.method ?? 'GET'} ${request.url ?? ''} HTTP/1.1`, ...lines, '', ''].join('\r\n'))
    up.write(head)
    for (const one of [socket, up]) one.on('error', () => one.destroy())
    socket.once('close', () => up.destroy())
    up.once('close', () => socket.destroy())
    this.#tunnels.push([socket, up])
    up.pipe(socket).pipe(up)
  }

  #note({ method = '', url = '' }: IncomingMessage): void {
    this.requests.push({ atMs: performance.now(), text: `${method} ${url}` })
  }
}

function statusOf({ status, message }: NonNullable<Answer>): string {
  return JSON.stringify({ kind: 'Status', status: 'Failure', message, code: status })
}

/** Options of an engine that reaches the API server by a proxy. */
export async function throughProxy<T extends KubernetesEngineOptions>(
  proxy: ApiProxy,
  options: T,
  server: string,
): Promise<T & { readonly kubeconfig: string }> {
  const address = await proxy.start()
  const kubeconfig = changedConfig(options.kubeconfig ?? '', (text) => trustAnyServer(text).replace(server, address))
  return { ...options, kubeconfig }
}
