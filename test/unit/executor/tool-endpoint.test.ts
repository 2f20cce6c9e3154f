import { type Duplex, duplexPair } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import { endpointAt, type ToolEndpoint } from '../../../src/executor/index.ts'
import { ToolConnection } from '../../../src/executor/tool-endpoint.ts'
import { bridgedTools, defineTool, prepareTools } from '../../../src/tools/index.ts'
import { z } from 'zod'
import { acceptanceOf, endpointThat } from '../../support/web-socket-peer.ts'
import { done, frame, play } from './wire.ts'

const tool = defineTool({ name: 'f', description: 'F.', input: z.object({}), effect: 'read', execute: () => 1 })
const tools = bridgedTools(prepareTools([tool]))
const marker = frame('stdout', { text: 'INITIALIZED SERVER 40123\n' })

afterEach(() => void vi.useRealTimers())

async function outcomeWith(toolEndpoint: ToolEndpoint, frames: readonly unknown[] = [marker]): Promise<unknown> {
  const run = play(frames, { replay: { after: 'open' }, request: { tools, toolEndpoint } })
  return run.then(
    ({ result }) => result.status,
    ({ code, message }: { code: string; message: string }) => `${code}: ${message}`,
  )
}

test.each([
  ['HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n', /websocket_failed.*401/],
  ['HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n', /websocket_failed.*302/],
  [
    'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x\r\n\r\n',
    /websocket_failed.*Accept/,
  ],
  ['SSH-2.0-OpenSSH\r\n', /websocket_failed/],
])('an endpoint that answers %j ends the run, and nothing of it is delivered', async (answer, expected) => {
  const events: string[] = []
  const endpoint = endpointThat((peer) => void peer.write(answer))
  const run = play([marker, frame('stdout', { text: 'x' })], {
    replay: { after: 'open' },
    request: { tools, toolEndpoint: endpoint },
    onEvent: ({ type }) => void events.push(type),
  })
  await expect(run).rejects.toThrow(expect.objectContaining({ code: 'websocket_failed' }) as Error)
  expect(await outcomeWith(endpoint)).toMatch(expected)
  expect(events).toEqual([])
  expect(endpoint.ports).toEqual([40_123, 40_123])
  expect(endpoint.streams.map(({ destroyed }) => destroyed)).toEqual([true, true])
})

test('an endpoint that hangs up, and one that cannot be reached, end the run', async () => {
  expect(await outcomeWith(endpointThat((peer) => void peer.end()))).toMatch(/^websocket_failed/)
  const gone = endpointThat(() => {})
  const connect = (port: number): Duplex => gone.connect(port).destroy(new Error('nothing listens'))
  expect(await outcomeWith({ host: '127.0.0.1', connect })).toMatch(/^websocket_failed: .*nothing listens/)
})

test('output in place of the marker ends the run', async () => {
  const endpoint = endpointThat(() => {})
  expect(await outcomeWith(endpoint, [frame('stdout', { text: 'hello\n' })])).toMatch(/^websocket_failed: .*begin/)
  expect(endpoint.ports).toEqual([])
})

test('a run without a marker, or without an answer of the endpoint, ends after 15 s', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  for (const frames of [[], [frame('stdout', { text: 'INITIALIZED SER' })], [marker]]) {
    const endpoint = endpointThat(() => {})
    const outcome = outcomeWith(endpoint, frames)
    for (let n = 0; n < 20; n += 1) await vi.advanceTimersByTimeAsync(0)
    await new Promise(setImmediate)
    await vi.advanceTimersByTimeAsync(15_001)
    expect(await outcome).toMatch(/^websocket_failed/)
    expect(endpoint.streams.every(({ destroyed }) => destroyed)).toBe(true)
  }
})

test('an attempt to connect that is aborted closes the connection', async () => {
  const over = new AbortController()
  const endpoint = endpointThat(() => over.abort())
  const opened = ToolConnection.open(endpoint, 40_123, 'token', { onMessage() {}, onClose() {} }, over.signal)
  await expect(opened).rejects.toThrow(/the run has ended/)
  expect(endpoint.streams.map(({ destroyed }) => destroyed)).toEqual([true])
})

test('a message in pieces of one byte is refused before it costs time', async () => {
  const piece = Buffer.from('x')
  let close = Buffer.alloc(0)
  const endpoint = endpointThat((peer, request) => {
    peer.write(acceptanceOf(request))
    peer.on('data', (part: Buffer) => void (close = Buffer.concat([close, part])))
    // A text of 64 KiB begins.
    peer.write(Buffer.from([0x81, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0]))
    for (let n = 0; n < 10_000; n += 1) peer.write(piece)
  })
  const closed = Promise.withResolvers<void>()
  const handler = { onMessage() {}, onClose: () => closed.resolve() }
  const connection = await ToolConnection.open(endpoint, 40_123, 'token', handler, new AbortController().signal)
  await closed.promise
  await vi.waitUntil(() => close.length >= 8, { timeout: 10_000 })
  // The payload of a client is masked.
  expect(close.readUInt16BE(6) ^ close.readUInt16BE(2)).toBe(1008)
  connection.end()
})

test('the error of a harness that cannot listen is a result', async () => {
  const gaveUp = frame('error', { message: 'the tools cannot be called: x', traceback: null, kind: 'setup' })
  const run = await play([gaveUp, done({ exit_code: 1 })], {
    request: { tools, toolEndpoint: endpointThat(() => {}) },
  })
  expect(run.result).toMatchObject({ success: false, error: 'the tools cannot be called: x' })
})

test('each run has a token of its own, at the address of the endpoint', async () => {
  const sent: unknown[] = []
  for (let n = 0; n < 2; n += 1) {
    const { sandbox } = await play([done()], {
      request: { tools, toolEndpoint: { host: '10.0.0.7', connect: () => duplexPair()[0] } },
    })
    const execute = sandbox.sent.find(({ type }) => type === 'execute') as { tool_endpoint?: { token: string } }
    expect(execute.tool_endpoint).toEqual({ host: '10.0.0.7', token: expect.stringMatching(/^[\w-]{43}$/) as string })
    sent.push(execute.tool_endpoint?.token)
  }
  expect(new Set(sent).size).toBe(2)
})

test('refuses an address that is not an IP address, or is one of the host', () => {
  expect(() => endpointAt('evil.example')).toThrow(/not an IP address/)
  for (const own of [
    '127.0.0.1',
    '127.9.9.9',
    '0.0.0.0',
    '169.254.169.254',
    '::1',
    '::',
    'fe80::1',
    '::ffff:127.0.0.1',
  ])
    expect(() => endpointAt(own)).toThrow(/loopback or link-local/)
  expect(endpointAt('fd00::7').host).toBe('fd00::7')
  expect(endpointAt('10.0.0.7').host).toBe('10.0.0.7')
})
