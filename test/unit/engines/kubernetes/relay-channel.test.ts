import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { attach } from '../../../../src/engines/kubernetes/relay-channel.ts'
import type { Attached } from '../../../../src/sandbox/index.ts'

const MiB = 1024 * 1024
let server: WebSocketServer
let peer: WebSocket
let socket: WebSocket
let attached: Attached

beforeEach(async () => {
  server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const connected = once(server, 'connection') as Promise<[WebSocket]>
  socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await once(socket, 'open')
  ;[peer] = await connected
  attached = attach(socket)
})

afterEach(() => {
  vi.useRealTimers()
  attached.channel.close()
  server.close()
})

/** A message of one stream of an exec. */
function message(stream: number, text: string): Buffer {
  return Buffer.concat([Buffer.from([stream]), Buffer.from(text)])
}

test('what is sent carries its stream and its length', async () => {
  const received = once(peer, 'message') as Promise<[Buffer]>
  await attached.channel.send(Buffer.from('hello'))
  expect([...(await received)[0]]).toEqual([0, 0, 0, 0, 5, ...Buffer.from('hello')])
})

test('a large request goes in pieces, in order', async () => {
  const pieces: Buffer[] = []
  peer.on('message', (piece: Buffer) => pieces.push(piece))
  const bytes = Buffer.alloc(600_000, 'abcdefg')
  await attached.channel.send(bytes)
  peer.ping()
  peer.close()
  await attached.ended
  expect(pieces.map((piece) => piece.readUInt32BE(1))).toEqual([262_144, 262_144, 75_712])
  expect(Buffer.concat(pieces.map((piece) => piece.subarray(5))).equals(bytes)).toBe(true)
})

test('standard output is the channel, standard error the last words, and a failed status stands in for them', async () => {
  peer.send(message(2, 'words'))
  peer.send(message(1, 'frame\n'))
  expect(String(await attached.channel.receive())).toBe('frame\n')
  peer.send(message(3, '{"status":"Failure","message":"command terminated"}'))
  peer.close()
  expect(await attached.channel.receive()).toBeNull()
  expect(attached.lastOutput()).toBe('words')
})

test('a failed status is the last words of a program that said nothing', async () => {
  peer.send(message(3, '{"status":"Failure","message":"command terminated"}'))
  peer.close()
  await attached.ended
  expect(attached.lastOutput()).toBe('command terminated')
})

test('a reader that takes nothing stops the server', async () => {
  const flood = Buffer.alloc(1 << 20, 1)
  for (let sent = 0; sent < 32; sent += 1) peer.send(flood)
  await attached.channel.receive()
  // What neither side has read stays with the sender.
  expect(peer.bufferedAmount).toBeGreaterThan(8 << 20)
})

test('what a reader gives back is freed at once, and a flood leaves no garbage', async () => {
  const flood = Buffer.alloc(32_769, 1)
  const inBuffers = (): number => process.memoryUsage().arrayBuffers
  const before = inBuffers()
  let most = 0
  let sent = 0
  const fill = (): void => {
    for (; peer.bufferedAmount < MiB && sent < 4096; sent += 1) peer.send(flood)
  }
  for (let received = 0; received < 4096 * 32_768;) {
    fill()
    received += (await attached.channel.receive())?.length ?? 0
    attached.channel.release?.()
    most = Math.max(most, inBuffers() - before)
  }
  // Node collects by itself at 64 MiB or more.
  expect(most / MiB).toBeLessThan(16)
})

test('freeing changes no message: of any size, in fragments, with pings and pongs between', async () => {
  const sizes = [1, 70_000, 3, 4096, 20_000, 65_535, 300_000, 8192, 100, 17_000, 65_536, 2]
  const expected: Buffer[] = []
  for (const [index, size] of Array.from({ length: 20 }, () => sizes)
    .flat()
    .entries()) {
    const bytes = Buffer.alloc(size, `${index},`)
    expected.push(bytes)
    const half = Math.floor(size / 2)
    if (index % 3 === 0) {
      peer.send(message(1, bytes.toString('latin1', 0, half)), { fin: false })
      peer.pong('p'.repeat(index % 100))
      peer.send(bytes.subarray(half), { fin: index % 5 > 0 })
      if (index % 5 === 0) peer.send(Buffer.alloc(0), { fin: true })
    } else peer.send(message(1, bytes.toString('latin1')))
    if (index % 4 === 0) peer.ping()
  }
  peer.close()
  const received: Buffer[] = []
  for (let piece = await attached.channel.receive(); piece !== null; piece = await attached.channel.receive()) {
    received.push(Buffer.from(piece))
    attached.channel.release?.()
  }
  expect(Buffer.concat(received).equals(Buffer.concat(expected))).toBe(true)
})

test('a reader that takes nothing sends heartbeats alone: the server would answer a ping behind what waits, and read nothing meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['setInterval'] })
  const heard: string[] = []
  const socket = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`)
  const connected = once(server, 'connection') as Promise<[WebSocket]>
  await once(socket, 'open')
  ;[peer] = await connected
  peer.on('ping', () => heard.push('ping'))
  peer.on('message', () => heard.push('heartbeat'))
  const other = attach(socket)
  const beat = async (): Promise<void> => {
    const message = once(peer, 'message')
    vi.advanceTimersByTime(5000)
    await message
  }
  await beat()
  peer.send(message(1, 'one'))
  peer.send(message(1, 'two'))
  // The first one is kept for the reader, and stops the socket.
  await vi.waitUntil(() => socket.isPaused, { timeout: 10_000 })
  await beat()
  expect(String(await other.channel.receive())).toBe('one')
  expect(String(await other.channel.receive())).toBe('two')
  void other.channel.receive()
  await beat()
  expect(heard).toEqual(['ping', 'heartbeat', 'heartbeat', 'ping', 'heartbeat'])
  other.channel.close()
})

test('a message whose last fragment is empty, and comes later, arrives', async () => {
  const { _socket: connection } = socket as unknown as { readonly _socket: { readonly bytesRead: number } }
  const before = connection.bytesRead
  peer.send(message(1, 'first'), { fin: false })
  await vi.waitFor(() => expect(connection.bytesRead).toBeGreaterThan(before))
  peer.send(Buffer.alloc(0), { fin: true })
  peer.send(message(1, 'second'))
  expect(String(await attached.channel.receive())).toBe('first')
  expect(String(await attached.channel.receive())).toBe('second')
})
