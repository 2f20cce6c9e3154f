import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createConnection, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { attach } from '../../../../src/engines/docker/attached-channel.ts'
import type { Attached } from '../../../../src/sandbox/index.ts'
import type { Channel } from '../../../../src/sandbox/index.ts'
import { eventually } from '../../../support/eventually.ts'
import { settledMemory, watchGrowth } from '../../../support/memory.ts'
import { frame } from './multiplexed.ts'

const MiB = 1024 * 1024
/** The platform's default name resolution. */
const GONE = /EPIPE|ECONNRESET|ECANCELED|destroyed|closed|ended|after end/
const place = mkdtempSync(join(tmpdir(), 'sandglass-attach-'))
const server: Server = createServer({ allowHalfOpen: true })
beforeAll(async () => {
  server.listen(join(place, 'socket'))
  await once(server, 'listening')
})
afterAll(() => {
  server.close()
  rmSync(place, { recursive: true, force: true })
})

/** Both ends of a connection: ours and the daemon's. */
async function connect(): Promise<{ attached: Attached; socket: Socket; daemon: Socket }> {
  const accepted = once(server, 'connection')
  const socket = createConnection(join(place, 'socket'))
  const attached = attach(socket)
  const [daemon] = (await accepted) as [Socket]
  daemon.on('error', () => {})
  return { attached, socket, daemon }
}

async function everythingOf(channel: Channel): Promise<string> {
  let text = ''
  for (let piece = await channel.receive(); piece !== null; piece = await channel.receive()) {
    text += Buffer.from(piece).toString('latin1')
  }
  return text
}

test('returns the standard output of the container, then always null', async () => {
  const { attached, daemon } = await connect()
  daemon.end(Buffer.concat([frame('stdout', Buffer.from('one ')), frame('stdout', Buffer.from('two'))]))
  expect(await everythingOf(attached.channel)).toBe('one two')
  expect(await attached.channel.receive()).toBeNull()
  await attached.ended
})

test('half-close: keeps what the peer sent before it closed its side, and rejects later sends', async () => {
  const { attached, daemon } = await connect()
  const ended = once(daemon, 'end')
  daemon.resume()
  daemon.end(frame('stdout', Buffer.from('last words')))
  expect(await everythingOf(attached.channel)).toBe('last words')
  await ended // our side is closed, too
  await expect(attached.channel.send(Buffer.from('late'))).rejects.toThrow(GONE)
})

test('send and receive report that the peer is gone, also when they already wait', async () => {
  const { attached, daemon } = await connect()
  daemon.pause()
  const received = attached.channel.receive()
  // More than the buffers of a socket hold, so the send waits.
  const sent = attached.channel.send(Buffer.alloc(8 * MiB))
  daemon.destroy()
  await expect(sent).rejects.toThrow(GONE)
  expect(await received).toBeNull()
  await expect(attached.channel.send(Buffer.from('x'))).rejects.toThrow(GONE)
})

test('close ends both directions and settles every pending call; a second close does nothing', async () => {
  const { attached, daemon } = await connect()
  daemon.pause()
  const received = attached.channel.receive()
  const sent = attached.channel.send(Buffer.alloc(8 * MiB))
  attached.channel.close()
  attached.channel.close()
  await expect(sent).rejects.toThrow(GONE)
  expect(await received).toBeNull()
  await attached.ended
})

test('back-pressure stops a flood that is not read', async () => {
  const { attached, socket, daemon } = await connect()
  const flood = frame('stdout', Buffer.alloc(MiB, 'x'))
  const grown = watchGrowth()
  let written = 0
  daemon.on('drain', () => fill())
  const fill = (): void => {
    do written += flood.length
    while (daemon.write(flood))
  }
  fill()
  // Reading one piece frees space for one more.
  expect((await attached.channel.receive())?.length).toBeGreaterThan(0)
  const paused = await eventually(() => (socket.isPaused() ? undefined : 'it reads on'), 5000)
  expect(paused).toBeUndefined()
  expect(socket.bytesRead).toBeLessThan(MiB)
  expect(written).toBeLessThan(8 * MiB)
  expect(grown()).toBeLessThan(32)
  attached.channel.close()
  daemon.destroy()
})

test('a flood on the standard error neither fills memory nor enters the channel; its head is kept', async () => {
  const { attached, daemon } = await connect()
  const flood = frame('stderr', Buffer.alloc(MiB, 'x'))
  settledMemory()
  const before = process.memoryUsage().arrayBuffers
  const everything = everythingOf(attached.channel)
  const text = Buffer.from('é'.repeat(32_768))
  daemon.write(frame('stderr', text.subarray(0, 1))) // a character that is cut
  daemon.write(frame('stderr', text.subarray(1)))
  for (let sent = 0; sent < 16; sent += 1) {
    if (!daemon.write(flood)) await once(daemon, 'drain')
    if (sent === 8) daemon.write(frame('stdout', Buffer.from('between')))
  }
  daemon.end(frame('stdout', Buffer.from(' and after')))
  expect(await everything).toBe('between and after')
  expect(attached.lastOutput()).toBe('é'.repeat(8192))
  settledMemory()
  expect((process.memoryUsage().arrayBuffers - before) / MiB).toBeLessThan(4)
})

test('ends the connection at invalid framing, and reads nothing after it', async () => {
  const { attached, socket, daemon } = await connect()
  const ended = once(daemon, 'end')
  daemon.resume()
  daemon.write(frame('stdout', Buffer.from('fine')))
  expect(Buffer.from((await attached.channel.receive()) ?? []).toString()).toBe('fine')
  daemon.write('HTTP/1.1 500 what is this')
  expect(await attached.channel.receive()).toBeNull()
  await ended
  expect(socket.destroyed).toBe(true)
  expect(attached.lastOutput()).toBe('not a multiplexed stream: a header begins with 72 84 84 80')
  await expect(attached.channel.send(Buffer.from('x'))).rejects.toThrow(GONE)
})

test('a claimed length of 4 GiB without data allocates nothing, and ends with the stream', async () => {
  const { attached, daemon } = await connect()
  daemon.write(Uint8Array.of(1, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 65))
  expect(Buffer.from((await attached.channel.receive()) ?? []).toString()).toBe('A')
  daemon.end()
  expect(await attached.channel.receive()).toBeNull()
  expect(attached.lastOutput()).toBe('the connection to the container ended in the middle of a frame')
})
