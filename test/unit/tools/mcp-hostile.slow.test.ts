import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { connectMcp, prepareTools } from '../../../src/tools/index.ts'
import { boundedFetch } from '../../../src/tools/mcp-bounds.ts'
import { watchGrowth } from '../../support/memory.ts'
import { stallDuring } from '../../support/stall.ts'

/** An MCP server of one tool, whose result is the value of an expression. */
function serverThatAnswers(result: string): { readonly command: string; readonly args: readonly string[] } {
  const program = `
    const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
    const lines = require('node:readline').createInterface({ input: process.stdin })
    lines.on('line', (line) => {
      const { id, method, params } = JSON.parse(line)
      if (method === 'initialize') {
        const { protocolVersion } = params
        send(id, { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
      } else if (method === 'tools/list') send(id, { tools: [{ name: 'a', inputSchema: { type: 'object' } }] })
      else if (method === 'tools/call') ${result.startsWith('raw:') ? `process.stdout.write(${result.slice(4)} + '\\n')` : `send(id, ${result})`}
    })`
  return { command: process.execPath, args: ['-e', program] }
}

test.each<[string, string, string]>([
  ['20,000 empty blocks', '{ content: Array(20000).fill({}) }', 'taken'],
  [
    '60,000 keys',
    '{ structuredContent: Object.fromEntries(Array.from({ length: 6e4 }, (_, n) => ["k" + n, n])) }',
    'taken',
  ],
  [
    'too many keys',
    '{ structuredContent: Object.fromEntries(Array.from({ length: 4e5 }, (_, n) => [n, 0])) }',
    'refused',
  ],
  ['an error of 4 MiB', '{ isError: true, content: [{ type: "text", text: "x".repeat(2 ** 22) }] }', 'refused'],
  [
    '3,000,000 levels',
    `raw:'{"jsonrpc":"2.0","id":' + id + ',"result":{"a":' + '['.repeat(3e6) + ']'.repeat(3e6) + '}}'`,
    'refused',
  ],
  [
    'levels in an error',
    `raw:'{"jsonrpc":"2.0","error":{"code":1,"message":"m","data":' + '['.repeat(3e6) + ']'.repeat(3e6) + '},"id":' + id + '}'`,
    'refused',
  ],
  ['a text of 3 MiB', '{ content: [{ type: "text", text: "x".repeat(3 * 2 ** 20) }] }', 'taken'],
])('an answer of a tool server with %s does not hold the host', async (_, result, want) => {
  await using connection = await connectMcp(serverThatAnswers(result))
  const [tool] = prepareTools(connection).tools.values()
  const context = { signal: new AbortController().signal, callId: 'c', executionId: 'e' }
  let ended = ''
  const stall = await stallDuring(async () => {
    const call = Promise.resolve(tool?.execute({}, context))
    ended = await call.then(
      () => 'taken',
      () => 'refused',
    )
  })
  expect([ended, stall < 250]).toEqual([want, true])
})

test('a stream of events of a tool server may not hold an event without an end', async () => {
  let sent = 0
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const line = Buffer.from(`data: ${'x'.repeat(2 ** 20)}\n`)
    const send = (): void => {
      while (!response.destroyed && response.write(line)) sent += line.length
      response.once('drain', send)
    }
    send()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  await expect(
    connectMcp({ url: `http://127.0.0.1:${port}/`, signal: AbortSignal.timeout(20_000) }),
  ).rejects.toMatchObject({
    code: 'mcp_unreachable',
  })
  expect(sent).toBeLessThan(64 * 2 ** 20)
  server.closeAllConnections()
  server.close()
})

test('a message of a tool server that is too long ends the call', async () => {
  await using connection = await connectMcp(
    serverThatAnswers('{ content: [{ type: "text", text: "x".repeat(9 * 2 ** 20) }] }'),
  )
  const [tool] = prepareTools(connection).tools.values()
  const signal = AbortSignal.timeout(20_000)
  await expect(tool?.execute({}, { signal, callId: 'c', executionId: 'e' })).rejects.toThrow(/./)
  expect(signal.aborted).toBe(false)
})

test('a tool server that asks and reads no answers costs neither time nor memory', async () => {
  const PINGS = 200_000
  const program = `
    const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n')
    process.stdin.on('data', (bytes) => {
      for (const line of String(bytes).split('\\n').filter(Boolean)) {
        const { id, method, params } = JSON.parse(line)
        if (method === 'initialize') {
          const { protocolVersion } = params
          send({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } } })
        } else if (method === 'tools/list') {
          const ping = (_, id) => JSON.stringify({ jsonrpc: '2.0', id, method: 'ping' }) + '\\n'
          process.stdin.pause()
          process.stdout.write(Array.from({ length: ${PINGS} }, ping).join(''), () => process.stdin.resume())
          send({ id, result: { tools: [] } })
        }
      }
    })`
  const growth = watchGrowth()
  const stall = await stallDuring(async () => {
    await using connection = await connectMcp({ command: process.execPath, args: ['-e', program] })
    expect(connection.tools).toEqual([])
  })
  expect([stall < 250, growth() < 64]).toEqual([true, true])
})

/** A server at an address; `answer` gets the path and the headers of each request. */
async function serverAt(answer: RequestListener): Promise<{ url: string } & Disposable> {
  const server = createServer(answer)
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  return { url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: close }
}

test('answers to a tool server at an address that takes none of them are bounded', async () => {
  let taken = 0
  using server = await serverAt((request, response) => {
    taken += 1
    request.resume().once('close', () => response.destroyed)
  })
  const stop = new AbortController()
  const send = boundedFetch(() => undefined)
  const body = '{"result":{},"jsonrpc":"2.0","id":1}'
  const sent = Array.from({ length: 1000 }, () => send(server.url, { method: 'POST', body, signal: stop.signal }))
  const ended = Promise.allSettled(sent)
  await expect(sent.at(-1)).rejects.toThrow('the server asks faster than it takes answers')
  stop.abort()
  await ended
  expect(taken).toBeLessThanOrEqual(32)
})

test('headers of a tool server are sent to no other one that it redirects to', async () => {
  const seen: unknown[] = []
  using other = await serverAt((request, response) => {
    seen.push(request.headers['x-api-key'])
    response.end()
  })
  using server = await serverAt((request, response) => {
    seen.push(request.url)
    response.writeHead(307, { location: request.url === '/' ? '/mcp/' : other.url }).end()
  })
  await expect(connectMcp({ url: server.url, headers: { 'x-api-key': 'tops3cret' } })).rejects.toMatchObject({
    code: 'mcp_unreachable',
    message: expect.stringContaining(`it redirects to ${other.url}`) as string,
  })
  expect(seen).toEqual(['/', '/mcp/'])
})
