import assert from 'node:assert/strict'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { type AddressInfo, createConnection, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { dockerEngine } from '../../../../src/engines/docker/index.ts'
import { eventually } from '../../../../test/support/eventually.ts'
import { openDirectory } from '../../../../test/support/state-directory.ts'
import { answerOf, describeAnswer } from '../../driver/answer.ts'
import { startHost } from '../../driver/host-process.ts'
import type { CaseContext } from '../../driver/case-state.ts'
import { stateWith, daemonOf, openEngine } from '../docker.ts'
import { openError } from './hosts.ts'

/** API timeout of the engine plus a margin for a loaded machine. */
const API_MS = 10_000 + 2500

/** FLT-005: the daemon is unreachable at the start, or becomes unreachable later. */
export async function reportsUnreachableDaemon(context: CaseContext): Promise<void> {
  const directory = openDirectory('daemons')
  await using silent = await listenOn(join(directory, 'silent.sock'), () => {})
  const closedPort = await findUnusedPort()
  for (const host of [`tcp://127.0.0.1:${closedPort}`, `unix://${silent.path}`]) {
    await using started = startHost(context.engine, { state: stateWith(context.engine, { host }) })
    await started.memory() // waits until the process is ready
    const begun = performance.now()
    assert.equal((await openError(started)).code, 'docker_unreachable')
    assert.ok(performance.now() - begun < API_MS, `reported after ${performance.now() - begun} ms`)
    await checkReport(host)
  }
  await interruptDaemon(context, join(directory, 'proxy.sock'))
  rmSync(directory, { recursive: true, force: true })
}

async function checkReport(host: string): Promise<void> {
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

/** Cuts off and silences the daemon: no run stays pending, and the pool recovers without help. */
async function interruptDaemon({ engine }: CaseContext, path: string): Promise<void> {
  await using proxy = await proxyTo(daemonOf(engine), path)
  const { apiTimeoutMs, checkoutTimeoutMs } = PATIENCE
  const proxied = openEngine(stateWith(engine, { host: `unix://${path}`, apiTimeoutMs }))
  await using sandglass = await proxied.open({ poolSize: 1, maxOverflow: 0, checkoutTimeoutMs })
  const run = (): ReturnType<typeof answerOf> =>
    answerOf(sandglass, 'emit_result(1)', { limits: { executionTimeoutSec: 1 } })
  for (const mode of ['gone', 'silent'] as const) {
    assert.equal((await run()).result?.finalData, 1)
    proxy.be(mode)
    // A warm sandbox may serve the first run.
    const answers = [await run(), await run()]
    assert.ok(namesDaemon(answers[1]?.thrown ?? null, path), answers.map(describeAnswer).join('; '))
    const late = answers.filter(({ wallMs }) => wallMs > checkoutTimeoutMs + 1000 + 6000)
    assert.deepEqual(late.map(describeAnswer), [])
    proxy.be('open')
    const problem = await eventually(async () => {
      const answer = await run()
      return answer.result?.finalData === 1 ? undefined : describeAnswer(answer)
    }, 20_000)
    assert.equal(problem, undefined)
  }
}

/** True when an error names the daemon. A waiting caller gets it from the pool, with the last error of the engine. */
function namesDaemon(thrown: { code: string; message: string } | null, path: string): boolean {
  if (thrown === null || !thrown.message.includes(path)) return false
  return ['docker_unreachable', 'pool_exhausted'].includes(thrown.code)
}

interface Listener extends AsyncDisposable {
  readonly path: string
  readonly sockets: ReadonlySet<Socket>
}

async function listenOn(path: string, onSocket: (socket: Socket) => void): Promise<Listener> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  await waitForListening(server, { path })
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
  /** `gone` cuts all connections and rejects new ones; `silent` keeps them open and forwards nothing. */
  be(mode: 'open' | 'gone' | 'silent'): void
}

/** A proxy to a daemon that can be cut off. */
async function proxyTo(host: string, path: string): Promise<Proxy> {
  let mode: 'open' | 'gone' | 'silent' = 'open'
  const behind = new Set<Socket>()
  const front = await listenOn(path, (socket) => {
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

async function findUnusedPort(): Promise<number> {
  const server = createServer()
  await waitForListening(server, { host: '127.0.0.1', port: 0 })
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

async function waitForListening(
  server: Server,
  where: { path: string } | { host: string; port: number },
): Promise<void> {
  server.listen(where)
  await once(server, 'listening')
}
