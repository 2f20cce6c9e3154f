import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inflateSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { Archives } from '../../../../src/engines/kubernetes/archive.ts'
import type { Cluster } from '../../../../src/engines/kubernetes/cluster.ts'
import { Deliveries } from '../../../../src/engines/kubernetes/deliver.ts'
import { listDirectory } from '../../../../src/engines/kubernetes/directory.ts'
import type { PodPlan } from '../../../../src/engines/kubernetes/pod-spec.ts'

const PLAN = { name: 'sandglass-1', python: 'python3' } as PodPlan
const [STDOUT, STDERR] = [1, 2]

let directory: string
let server: WebSocketServer
let archives: Archives
let deliveries: Deliveries
let commands: (readonly string[])[]

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'sandglass-unit-'))
  writeFileSync(join(directory, 'a.py'), 'x = 1')
  chmodSync(join(directory, 'a.py'), 0o644)
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  archives = new Archives()
  const sent = { name: 'packages', path: '/packages', listing: await listDirectory('packages', directory) } as const
  deliveries = await Deliveries.pack([sent], archives, undefined)
  commands = []
})

afterEach(() => {
  deliveries[Symbol.dispose]()
  archives.close()
  server.close()
  rmSync(directory, { recursive: true })
})

/** A cluster whose programs are the other end of a connection. */
const cluster = {
  async exec(pod, container, command) {
    commands.push([pod, container, ...command])
    const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
    await once(socket, 'open')
    return socket
  },
} as Partial<Cluster> as Cluster

/** Calls back with what a program in the pod has received so far, each time. */
function onReceived(react: (bytes: Buffer, peer: WebSocket) => void): void {
  server.once('connection', (peer) => {
    let bytes = Buffer.alloc(0)
    peer.on('message', (message: Buffer) => {
      bytes = Buffer.concat([bytes, message.subarray(5)])
      react(bytes, peer)
    })
  })
}

function say(peer: WebSocket, stream: number, text: string): void {
  peer.send(Buffer.concat([Buffer.from([stream]), Buffer.from(text)]))
}

test('a directory goes to a program in the container beside the sandbox, which confirms it', async () => {
  let received: Buffer = Buffer.alloc(0)
  onReceived((bytes, peer) => {
    received = bytes
    say(peer, STDOUT, 'unpacked\n')
  })
  await deliveries.send(cluster, PLAN, 10_000, undefined)
  expect(inflateSync(received).toString()).toContain('x = 1')
  expect(commands).toEqual([
    [
      'sandglass-1',
      'relay',
      'python3',
      '-I',
      '-S',
      '-B',
      '-X',
      'utf8',
      '-c',
      expect.stringContaining('UNPACK'),
      '/packages',
    ],
  ])
})

test('a program that fails is told in its words', async () => {
  onReceived((_, peer) => {
    say(peer, STDERR, 'the directory could not be unpacked: no space')
    peer.close()
  })
  await expect(deliveries.send(cluster, PLAN, 10_000, undefined)).rejects.toMatchObject({
    code: 'sandbox_setup_failed',
    message: `${directory} could not be sent to the pod: the directory could not be unpacked: no space`,
  })
})

test('a program that does not answer in time is told', async () => {
  onReceived(() => undefined)
  await expect(deliveries.send(cluster, PLAN, 50, undefined)).rejects.toThrow('longer than kubernetes.startTimeoutMs')
})

test('an abort ends it', async () => {
  const controller = new AbortController()
  onReceived(() => controller.abort())
  const sending = deliveries.send(cluster, PLAN, 10_000, controller.signal)
  await expect(sending).rejects.toMatchObject({ code: 'aborted' })
})
