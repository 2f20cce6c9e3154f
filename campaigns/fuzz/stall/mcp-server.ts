import { connectMcp, prepareTools } from '../../../src/tools/index.ts'
import { type EntryPoint, MiB } from './entry-point.ts'

/** Messages that an MCP server sends beside an answer, as expressions of the number `n`. */
const MESSAGES: readonly { name: string; message: string }[] = [
  {
    name: 'notifications',
    message: `'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":' + n + '}}'`,
  },
  { name: 'objects that are none', message: `'{}'` },
  { name: 'pings whose answers it does not read', message: `'{"jsonrpc":"2.0","id":' + n + ',"method":"ping"}'` },
]

/** A server whose one tool takes the number of messages, sends them, and then answers. From that call on it reads nothing. */
const programOf = (message: string): string => `
  const send = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n')
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line)
    if (method === 'initialize') {
      const serverInfo = { name: 's', version: '1' }
      send(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo })
    } else if (method === 'tools/list') send(id, { tools: [{ name: 'a', inputSchema: { type: 'object' } }] })
    else if (method === 'tools/call') {
      process.stdin.pause()
      let lines = ''
      for (let n = 0; n < params.arguments.count; n += 1) lines += ${message} + '\\n'
      process.stdout.write(lines)
      send(id, { content: [{ type: 'text', text: 'done' }] })
    }
  })`

/** Unsolicited messages of a tool server, through the pipe of its process. */
export const MCP_ENTRY_POINTS: readonly EntryPoint[] = MESSAGES.map(({ name, message }) => ({
  name: `MCP messages: ${name}`,
  from: 'a tool server',
  unit: 'messages',
  sizes: [3000, 30_000, 300_000],
  limitBytes: 8 * MiB,
  prepare: (size) => {
    // One process for each repetition, which may be left with unread answers.
    const act = async (): Promise<unknown> => {
      await using connection = await connectMcp({ command: process.execPath, args: ['-e', programOf(message)] })
      const [tool] = prepareTools(connection).tools.values()
      const context = { signal: AbortSignal.timeout(60_000), callId: 'c', executionId: 'e' }
      return await Promise.resolve(tool?.execute({ count: size }, context)).catch((error: unknown) => error)
    }
    return Promise.resolve({ act, [Symbol.asyncDispose]: () => Promise.resolve() })
  },
}))
