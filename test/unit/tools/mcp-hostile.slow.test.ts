import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { connectMcp, type McpClient, mcpTools, prepareTools, type Tool } from '../../../src/tools/index.ts'
import { boundedFetch } from '../../../src/tools/mcp-bounds.ts'
import { heldMemory, watchGrowth } from '../../support/memory.ts'
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

const FLOOD = 100_000
const TINY: readonly (readonly [string, string])[] = [
  ['objects', '{}'],
  ['lists', '[]'],
  ['numbers', '1'],
  ['answers that nobody waits for', '{"jsonrpc":"2.0","id":100000,"result":{}}'],
  ['answers without an id', '{"jsonrpc":"2.0","result":{}}'],
]

test.each(TINY)('a flood of the smallest messages of a tool server does not hold the host: %s', async (_, line) => {
  const answer = "JSON.stringify({ jsonrpc: '2.0', id, result: { content: [] } })"
  await using connection = await connectMcp(serverThatAnswers(`raw:'${line}\\n'.repeat(${FLOOD}) + ${answer}`))
  const [tool] = prepareTools(connection).tools.values()
  const context = { signal: new AbortController().signal, callId: 'c', executionId: 'e' }
  const stall = await stallDuring(() => Promise.resolve(tool?.execute({}, context)))
  expect(stall).toBeLessThan(250)
})

test.each(TINY)('a flood of the smallest events of a tool server does not hold the host: %s', async (_, line) => {
  // In a process of its own, whose sending takes none of this thread's time.
  const program = `
    require('node:http').createServer((request, response) => {
      let body = ''
      request.on('data', (chunk) => (body += chunk)).on('end', () => {
        const { id, method, params } = body === '' ? {} : JSON.parse(body)
        if (id === undefined) return response.writeHead(request.method === 'GET' ? 405 : 202).end()
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const answer = (result) => response.end('data: ' + JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n\\n')
        if (method === 'initialize') {
          const { protocolVersion } = params
          return answer({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } })
        }
        response.write('data: ${line}\\n\\n'.repeat(${FLOOD}))
        answer({ tools: [] })
      })
    }).listen(0, '127.0.0.1', function () { console.log(this.address().port) })`
  const server = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    const [port] = (await once(server.stdout, 'data')) as [Buffer]
    const stall = await stallDuring(async () => {
      await using connection = await connectMcp({ url: `http://127.0.0.1:${String(port).trim()}/` })
      expect(connection.tools).toEqual([])
    })
    expect(stall).toBeLessThan(250)
  } finally {
    server.kill('SIGKILL')
  }
})

test('a tool server that closes its output and lives on is given up', async () => {
  const program = `
    process.stdin.once('data', () => require('node:fs').closeSync(1))
    setInterval(() => {}, 1000)`
  const started = performance.now()
  await expect(connectMcp({ command: process.execPath, args: ['-e', program] })).rejects.toMatchObject({
    code: 'mcp_unreachable',
  })
  // The client itself would wait for a minute; the program has 2 s to end.
  expect(performance.now() - started).toBeLessThan(20_000)
})

const MANY = `[${'[],'.repeat(300_000)}0]`
test.each<[string, string]>([
  ['behind a comment that a carriage return ends', `:\rdata: ${MANY}\n\n`],
  ['behind a byte order mark', `\uFEFFdata: ${MANY}\n\n`],
  ['in lines that carriage returns end', `data: [\rdata: ${MANY}\r\ndata: ]\r\r`],
  ['around a line of one character', `data: ${MANY.slice(0, 450_000)}\nx\ndata: ${MANY.slice(450_000)}\n\n`],
])('a stream of events of a tool server may not hold too many values %s', async (_, text) => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.end(text)
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const read = boundedFetch(() => undefined)(`http://127.0.0.1:${port}/`).then((response) => response.text())
  await expect(read).rejects.toThrow(RangeError)
  server.close()
})

test('lines of a stream of events keep their data, whatever ends them', async () => {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    const text = Buffer.from('\uFEFFdata: 1\r\ndata: 2\rid: x\n\r\n: ok\r\r')
    // Byte by byte, so that each place can be the end of a chunk.
    let at = 0
    const send = (): void => {
      if (at === text.length) response.end()
      else response.write(text.subarray(at, (at += 1)), send)
    }
    send()
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  const { port } = server.address() as AddressInfo
  const response = await boundedFetch(() => undefined)(`http://127.0.0.1:${port}/`)
  expect(await response.text()).toBe('data: 1\ndata: 2\nid: x\n\n: ok\n\n')
  server.close()
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

const SCHEMA = 64 * 1024 - 100
const listOf = (count: number, schema: unknown): McpClient => ({
  request: () =>
    Promise.resolve({ tools: Array.from({ length: count }, (_, n) => ({ name: `t${n}`, inputSchema: schema })) }),
})
const fields = (count: number, field: (at: number) => unknown): Record<string, unknown> =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`f${at}`, field(at)]))
const integers = fields(700, () => ({ type: 'integer', minimum: 1, maximum: 5 }))
const PARAMETERS = 250

test.each<[string, number, unknown]>([
  // The compiler writes the definition out for each: half a minute.
  ['a large definition in each parameter', 20, { $defs: { a: { properties: integers } }, ...referring('#/$defs/a') }],
  [
    'a definition that is looked for among a thousand',
    20,
    {
      $defs: {
        ...fields(1000, (at) => ({ $anchor: `a${at}` })),
        z: { $anchor: 'z', anyOf: Array(300).fill({ $ref: '#z' }) },
      },
      ...referring('#z'),
    },
  ],
  ['definitions that double', 60, { $defs: doubling(60), ...referring('#/$defs/f0') }],
  [
    'patterns of properties',
    16,
    { type: 'object', properties: { a: { patternProperties: fields(2400, () => ({})) } } },
  ],
  [
    'branches with the fields of a large definition',
    15,
    {
      $defs: { a: { allOf: Array(400).fill({ $ref: '#/$defs/b' }) }, b: { properties: integers } },
      type: 'object',
      properties: { a: { anyOf: Array(300).fill({ $ref: '#/$defs/a' }) } },
    },
  ],
  [
    'a thousand small schemas',
    1000,
    { type: 'object', title: 'T', $defs: doubling(6), properties: { a: { $ref: '#/$defs/f0' } } },
  ],
])('the schemas of a tool server do not hold the host: %s', async (_what, count, schema) => {
  expect(JSON.stringify(schema).length).toBeLessThan(SCHEMA)
  const before = heldMemory()
  let tools: readonly Tool[] = []
  const stall = await stallDuring(async () => {
    tools = await mcpTools(listOf(count, schema))
    await nextTurn()
    const { tools: prepared, checked } = prepareTools(tools)
    await nextTurn()
    JSON.stringify(checked)
    await nextTurn()
    await prepared
      .get('t0')
      ?.validateInput({ f0: 1 })
      .catch(() => undefined)
  })
  expect(tools).toHaveLength(count)
  const held = (heldMemory() - before) / 2 ** 20
  expect([stall < 250, held < 64]).toEqual([true, true])
})

function referring(reference: string): object {
  return { type: 'object', properties: fields(PARAMETERS, () => ({ $ref: reference })) }
}

function doubling(levels: number): Record<string, unknown> {
  return {
    ...fields(levels, (at) => ({ anyOf: [1, 2].map(() => ({ $ref: `#/$defs/f${at + 1}` })) })),
    [`f${levels}`]: {},
  }
}

test('the schemas of a tool server are bounded together', async () => {
  const schema = { type: 'object', description: 'x'.repeat(60_000) }
  await expect(mcpTools(listOf(18, schema))).rejects.toThrow(
    'mcpTools: the tools have more than 1048576 characters; name fewer in `only`',
  )
  expect(await mcpTools(listOf(18, schema), { only: ['t1', 't7'] })).toHaveLength(2)
})

test.each([
  ['small', { type: 'object', properties: { a: { type: 'strng' } } }],
  ['large', { type: 'object', properties: { a: { type: 'strng' } }, description: 'x'.repeat(5000) }],
])('a %s schema of a tool server that is invalid refuses the calls of its tool', async (_size, schema) => {
  const [tool] = prepareTools(await mcpTools(listOf(2, schema))).tools.values()
  await expect(tool?.validateInput({ a: 1 })).rejects.toThrow(
    /^t0: the arguments: cannot be checked: its schema is not a valid JSON Schema: /,
  )
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
  await expect(sent.at(-1)).rejects.toThrow('the MCP server sends requests faster than it reads the responses')
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
    message: expect.stringContaining(`the MCP server redirects to ${other.url}`) as string,
  })
  expect(seen).toEqual(['/', '/mcp/'])
})

/** Connects to a tool server from a process without a free descriptor, and prints the code and the message. */
const WITHOUT_DESCRIPTORS = `
import { openSync } from 'node:fs'
import { connectMcp } from ${JSON.stringify(new URL('../../../src/tools/index.ts', import.meta.url))}
const server = { command: process.execPath, args: ['-e', ''] }
const failure = () => connectMcp(server).catch(({ code, message }) => [code, message])
await failure() // loads what needs descriptors
try {
  for (;;) openSync('/dev/null')
} catch {}
console.error(JSON.stringify(await failure()))
`

test.skipIf(process.platform !== 'linux')(
  'a tool server that cannot be started for want of descriptors is reported, and the host goes on',
  () => {
    const host = ['-n', '64', process.execPath, '--no-warnings', '--input-type=module', '--eval', WITHOUT_DESCRIPTORS]
    const { status, stderr } = spawnSync('sh', ['-c', 'ulimit "$1" "$2"; shift 2; exec "$@"', 'sh', ...host], {
      encoding: 'utf8',
      timeout: 60_000,
    })
    expect([status, stderr]).toEqual([
      0,
      expect.stringMatching(/^\["mcp_unreachable","no MCP server answers at .* EMFILE\./),
    ])
  },
)
