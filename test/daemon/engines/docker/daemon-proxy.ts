import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The treatment of one request; every request has a connection of its own. */
export interface Treatment {
  /** It reaches the daemon when this settles. */
  readonly after?: Promise<unknown>
  /** Its answer comes back when this settles. */
  readonly answerAfter?: Promise<unknown>
  /** Transforms the bytes of the answer. Default: unchanged. */
  readonly answer?: (chunk: Buffer, client: Socket) => void | Promise<void>
}

/** A proxy between an engine and a working daemon that injects failures. */
export interface DaemonProxy extends AsyncDisposable {
  readonly host: string
  /** Method and path of each request so far, with `ID` for the container. */
  readonly requests: string[]
  /** Names of the containers that these requests are about. */
  readonly containers: ReadonlySet<string>
  /** Decides about each new request. */
  treat: (request: string) => Treatment | undefined
  /** Ends every connection, and refuses new ones until `restore`. */
  cut(): void
  /** Forwards nothing on any connection, like a daemon that hangs. */
  freeze(): void
  /** Ends `cut` and `freeze`. */
  restore(): Promise<void>
  /** Number of open connections. */
  readonly open: number
}

const CONTAINER = /sandglass-[0-9a-f-]{36}/g
const TESTED = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').replace(/^unix:\/\//, '')

/** Starts a proxy for a daemon at a socket, by default of the daemon that tests use. */
export async function proxyDaemon(target: string = TESTED): Promise<DaemonProxy> {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-proxy-'))
  const path = join(place, 'docker.sock')
  const clients = new Set<Socket>()
  let frozen = false
  let thaw = Promise.withResolvers<void>()
  const requests: string[] = []
  const containers = new Set<string>()

  const waitForThaw = async (): Promise<void> => {
    while (frozen) await thaw.promise
  }
  const serve = async (client: Socket): Promise<void> => {
    clients.add(client)
    client.on('close', () => clients.delete(client))
    client.on('error', () => {})
    const head = await firstBytes(client)
    if (head === undefined) return
    const request = requestIn(head)
    requests.push(request)
    for (const [name] of firstLine(head).matchAll(CONTAINER)) containers.add(name)
    const { after, answerAfter, answer } = proxy.treat(request) ?? {}
    await after
    await waitForThaw()
    const daemon = createConnection({ path: target, allowHalfOpen: true })
    daemon.on('error', () => client.destroy())
    daemon.on('close', () => void waitForThaw().then(() => client.end()))
    client.on('close', () => daemon.destroy())
    // The engine never closes one direction alone.
    client.on('end', () => client.destroy())
    daemon.write(head)
    client.on('data', (chunk: Buffer) => pass(client, () => void daemon.write(chunk)))
    client.resume()
    await answerAfter
    daemon.on('data', (chunk: Buffer) =>
      pass(daemon, () => (answer === undefined ? void client.write(chunk) : answer(chunk, client))),
    )
    daemon.on('end', () => void waitForThaw().then(() => client.end()))
  }
  const pass = (from: Socket, work: () => void | Promise<void>): void => {
    from.pause()
    const run = async (): Promise<void> => {
      await waitForThaw()
      await work()
      from.resume()
    }
    void run()
  }
  const makeServer = (): Server => createServer({ allowHalfOpen: true }, (client) => void serve(client))
  let server = makeServer()
  const listen = async (): Promise<void> => {
    rmSync(path, { force: true })
    server.listen(path)
    await once(server, 'listening')
  }
  await listen()

  const proxy: DaemonProxy = {
    host: `unix://${path}`,
    requests,
    containers,
    treat: () => undefined,
    get open() {
      return clients.size
    },
    cut() {
      server.close()
      for (const client of clients) client.destroy()
    },
    freeze() {
      frozen = true
    },
    async restore() {
      frozen = false
      thaw.resolve()
      thaw = Promise.withResolvers()
      if (server.listening) return
      server = makeServer()
      await listen()
    },
    async [Symbol.asyncDispose]() {
      frozen = false
      thaw.resolve()
      proxy.cut()
      rmSync(place, { recursive: true, force: true })
    },
  }
  return proxy
}

/** The first chunk; undefined when the stream ends without one. */
function firstBytes(client: Socket): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    client.once('data', (bytes: Buffer) => {
      client.pause()
      resolve(bytes)
    })
    client.once('close', () => resolve(undefined))
  })
}

function firstLine(head: Buffer): string {
  return head.toString('latin1').split('\r\n', 1)[0] ?? ''
}

function requestIn(head: Buffer): string {
  const [method = '', path = ''] = firstLine(head).split(' ')
  return `${method} ${path.split('?')[0]?.replace(/[0-9a-f]{64}|sandglass-[0-9a-f-]{36}/, 'ID') ?? ''}`
}
