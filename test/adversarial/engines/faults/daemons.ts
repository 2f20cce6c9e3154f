import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { eventually } from '../../../support/eventually.ts'
import { openDirectory } from '../../../support/state-directory.ts'
import { answerOf, shown } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { Ground } from '../../driver/stage.ts'
import { changed, daemonOf, openEngine } from '../docker.ts'
import { refusalOf } from './hosts.ts'

/** How long a daemon may take to answer, and what a loaded machine adds. */
const API_MS = 10_000 + 2500

/** FLT-005: at start, and when it was there before. */
export async function unreachableDaemonIsTold(ground: Ground): Promise<void> {
  const directory = openDirectory('daemons')
  await using silent = await listening(join(directory, 'silent.sock'), () => {})
  const closedPort = await portOfNobody()
  for (const host of [`tcp://127.0.0.1:${closedPort}`, `unix://${silent.path}`]) {
    await using started = startHost(ground.engine, { state: changed(ground.engine, { host }) })
    await started.memory() // it is up
    const begun = performance.now()
    assert.equal((await refusalOf(started)).code, 'docker_unreachable')
    assert.ok(performance.now() - begun < API_MS, `told after ${performance.now() - begun} ms`)
    await reportTellsOf(host)
  }
  await comesAndGoes(ground, join(directory, 'proxy.sock'))
  rmSync(directory, { recursive: true, force: true })
}

async function reportTellsOf(host: string): Promise<void> {
  const engine = dockerEngine({ host, apiTimeoutMs: 1000 })
  const { usable, reasons } = await engine.report()
  await engine.close()
  assert.equal(usable, false)
  assert.deepEqual(
    reasons.map(({ code, message, remedy }) => [code, message.includes(host), remedy !== '']),
    [['docker_unreachable', true, true]],
  )
}

const PATIENCE = { apiTimeoutMs: 2000, checkoutTimeoutMs: 6000 }

/** Neither a daemon that is gone nor one that says nothing leaves a run pending; the pool recovers by itself. */
async function comesAndGoes({ engine }: Ground, path: string): Promise<void> {
  await using proxy = await proxyTo(daemonOf(engine), path)
  const { apiTimeoutMs, checkoutTimeoutMs } = PATIENCE
  const proxied = openEngine(changed(engine, { host: `unix://${path}`, apiTimeoutMs }))
  await using sandglass = await proxied.open({ poolSize: 1, maxOverflow: 0, checkoutTimeoutMs })
  const run = (): ReturnType<typeof answerOf> =>
    answerOf(sandglass, 'emit_result(1)', { limits: { executionTimeoutSec: 1 } })
  for (const mode of ['gone', 'silent'] as const) {
    assert.equal((await run()).result?.finalData, 1)
    proxy.be(mode)
    // The first may meet a sandbox that was there.
    const answers = [await run(), await run()]
    assert.ok(tellsOfDaemon(answers[1]?.thrown ?? null, path), answers.map(shown).join('; '))
    const late = answers.filter(({ wallMs }) => wallMs > checkoutTimeoutMs + 1000 + 6000)
    assert.deepEqual(late.map(shown), [])
    proxy.be('open')
    const problem = await eventually(async () => {
      const answer = await run()
      return answer.result?.finalData === 1 ? undefined : shown(answer)
    }, 20_000)
    assert.equal(problem, undefined)
  }
}

/** Who waits while a creation for somebody else hangs is told by the pool, with what the engine said last. */
function tellsOfDaemon(thrown: { code: string; message: string } | null, path: string): boolean {
  if (thrown === null || !thrown.message.includes(path)) return false
  return ['docker_unreachable', 'pool_exhausted'].includes(thrown.code)
}

interface Listening extends AsyncDisposable {
  readonly path: string
  readonly sockets: ReadonlySet<Socket>
}

async function listening(path: string, onSocket: (socket: Socket) => void): Promise<Listening> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  await opened(server, { path })
  return {
    path,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

interface Proxy extends AsyncDisposable {
  /** `gone` cuts every connection and refuses new ones; `silent` lets no byte through any more. */
  be(mode: 'open' | 'gone' | 'silent'): void
}

/** A way to a daemon that can be shut. */
async function proxyTo(host: string, path: string): Promise<Proxy> {
  let mode: 'open' | 'gone' | 'silent' = 'open'
  const behind = new Set<Socket>()
  const front = await listening(path, (socket) => {
    if (mode === 'gone') return void socket.destroy()
    if (mode === 'silent') return
    const daemon = createConnection(host.slice('unix://'.length))
    behind.add(daemon)
    daemon.on('error', () => socket.destroy())
    daemon.once('close', () => {
      behind.delete(daemon)
      socket.destroy()
    })
    socket.once('close', () => daemon.destroy())
    daemon.pipe(socket)
    socket.pipe(daemon)
  })
  const all = (): Socket[] => [...front.sockets, ...behind]
  return {
    be(next) {
      if (next === 'silent') {
        for (const socket of all()) {
          socket.unpipe()
          socket.pause()
        }
      } else {
        for (const socket of all()) if (next === 'gone' || mode === 'silent') socket.destroy()
      }
      mode = next
    },
    async [Symbol.asyncDispose]() {
      for (const socket of behind) socket.destroy()
      await front[Symbol.asyncDispose]()
    },
  }
}

async function portOfNobody(): Promise<number> {
  const server = createServer()
  await opened(server, { host: '127.0.0.1', port: 0 })
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function opened(server: Server, where: { path: string } | { host: string; port: number }): Promise<void> {
  server.listen(where)
  await once(server, 'listening')
}
