import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline, Readable } from 'node:stream'
import type { Wheel } from './wheel.ts'

/** The faults of the index. */
export interface IndexFaults {
  /** Reports a wrong SHA-256 for every wheel. */
  lies?: boolean
  /** Answers every request with this status. */
  status?: number
  /** Answers only to who has this name and password, as `name:password`. */
  login?: string
  /** Waits so long before each answer. */
  delayMs?: number
  /** Never ends an answer of this kind. */
  endless?: 'page' | 'wheel' | undefined
  /** Sends the second half of every wheel after this. */
  half?: Promise<void>
  /** Sends a page without an end, as fast as it is read. */
  flood?: boolean
  /** Answers with plain pages (PEP 503), which contain no sizes. */
  plain?: boolean
  /** The time of upload of every wheel, as an ISO date. Default 2020-01-01. */
  uploaded?: string
}

const JSON_PAGE = { 'content-type': 'application/vnd.pypi.simple.v1+json' }

function* spaces(): Generator<Uint8Array, void, void> {
  const chunk = Buffer.alloc(1024 * 1024, ' ')
  for (;;) yield chunk
}

/** A package index on loopback (PEP 691) with the wheels of a test and separate metadata (PEP 658). */
export class PackageIndex implements AsyncDisposable {
  readonly faults: IndexFaults = {}
  /** The requested paths, in order. */
  readonly requests: string[] = []
  readonly #wheels: Wheel[] = []
  readonly #server: Server
  readonly #endless = new Set<NodeJS.Timeout>()

  private constructor() {
    this.#server = createServer((request, response) => this.#answer(request, response))
  }

  static async start(...wheels: readonly Wheel[]): Promise<PackageIndex> {
    const index = new PackageIndex()
    index.#wheels.push(...wheels)
    await new Promise<void>((resolve) => {
      index.#server.listen(0, '127.0.0.1', resolve)
    })
    return index
  }

  add(...wheels: readonly Wheel[]): void {
    this.#wheels.push(...wheels)
  }

  get address(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/simple`
  }

  /** Wheels that were downloaded, by file name. */
  get downloads(): readonly string[] {
    return this.requests.flatMap((path) => /^\/files\/([^/]+\.whl)$/.exec(path)?.[1] ?? [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const timer of this.#endless) clearInterval(timer)
    this.#server.closeAllConnections()
    await new Promise((resolve) => {
      this.#server.close(resolve)
    })
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const path = request.url ?? ''
    this.requests.push(path)
    const { delayMs } = this.faults
    if (delayMs === undefined) this.#answerNow(path, request, response)
    else setTimeout(() => this.#answerNow(path, request, response), delayMs)
  }

  #answerNow(path: string, request: IncomingMessage, response: ServerResponse): void {
    const { status, endless, flood, login } = this.faults
    const given = Buffer.from(request.headers.authorization?.replace(/^Basic /, '') ?? '', 'base64').toString()
    if (login !== undefined && given !== login) {
      return void response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end()
    }
    if (status !== undefined) return void response.writeHead(status).end()
    const project = /^\/simple\/([^/]+)\/$/.exec(path)?.[1]
    const file = this.#wheels.find(({ filename }) => path === `/files/${filename}`)
    const described = this.#wheels.find(({ filename }) => path === `/files/${filename}.metadata`)
    const isEndless = endless === 'page' ? project !== undefined : endless === 'wheel' && file !== undefined
    if (isEndless) return this.#drip(response, file?.content)
    if (flood === true) return void pipeline(Readable.from(spaces()), response.writeHead(200, JSON_PAGE), () => {})
    if (project !== undefined) this.#listing(project, response)
    else if (described !== undefined) response.writeHead(200).end(described.metadata)
    else if (file === undefined) response.writeHead(404).end()
    else void this.#send(file.content, response.writeHead(200, { 'content-length': file.content.length }))
  }

  async #send(content: Uint8Array, response: ServerResponse): Promise<void> {
    const middle = this.faults.half === undefined ? content.length : Math.floor(content.length / 2)
    response.write(content.subarray(0, middle))
    await this.faults.half
    response.end(content.subarray(middle))
  }

  #listing(project: string, response: ServerResponse): void {
    const files = this.#wheels.filter(({ name }) => name === project)
    if (files.length === 0) return void response.writeHead(404).end()
    if (this.faults.plain === true) {
      const links = files.map(({ filename, sha256 }) => `<a href="/files/${filename}#sha256=${sha256}">${filename}</a>`)
      return void response.writeHead(200, { 'content-type': 'text/html' }).end(links.join('\n'))
    }
    const body = {
      meta: { 'api-version': '1.1' },
      name: project,
      files: files.map(({ filename, sha256, content }) => ({
        filename,
        url: `/files/${filename}`,
        size: content.length,
        'upload-time': this.faults.uploaded ?? '2020-01-01T00:00:00Z',
        'core-metadata': true,
        hashes: { sha256: this.faults.lies === true ? sha256.replaceAll(/[0-9a-f]/g, 'a') : sha256 },
      })),
    }
    response.writeHead(200, JSON_PAGE).end(JSON.stringify(body))
  }

  /** Sends a byte every 20 ms, endlessly. */
  #drip(response: ServerResponse, content: Uint8Array | undefined): void {
    response.writeHead(200, JSON_PAGE)
    let at = 0
    const timer = setInterval(() => response.write(content?.subarray(at, ++at) ?? ' '), 20)
    this.#endless.add(timer)
    response.on('close', () => clearInterval(timer))
  }
}
