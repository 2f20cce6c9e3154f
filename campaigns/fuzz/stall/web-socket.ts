import { setImmediate as nextTurn } from 'node:timers/promises'
import { bridgedTools, defineTool, prepareTools } from '../../../src/tools/index.ts'
import { acceptanceOf, endpointThat, messageOf } from '../../../test/support/web-socket-peer.ts'
import { CAPS } from '../../../src/protocol/index.ts'
import { replayChannel, wireLines } from '../../../src/testing/index.ts'
import { ScriptExecutor } from '../../../src/executor/index.ts'
import type { EntryPoint, Prepared } from './entry-point.ts'

const RUN = { execution_id: 'e1' }
const ENDING = { cause: 'exit', exit_code: 0, signal: null, by: 'script' }
const MARKER = wireLines({ type: 'stdout', ...RUN, text: 'INITIALIZED SERVER 40123\n' })
const DONE = wireLines({ type: 'script_done', ...RUN, ending: ENDING, reusable: true, use: 1 })
const callOf = (name: string, args: object): Buffer =>
  messageOf(JSON.stringify({ type: 'tool_call', ...RUN, id: name, name, args }))

const PIECE_BYTES = 512
/** The pieces that are written in one turn of the event loop. */
const PIECES_OF_TURN = 128

/** Calls over the WebSocket of a run. The last one ends it. */
export const WEB_SOCKET_ENTRY_POINTS: readonly EntryPoint[] = [
  {
    name: 'WebSocket: a call in small pieces',
    from: 'a script',
    unit: 'pieces',
    sizes: [500, 2000, 8000],
    limitBytes: CAPS.argBytes,
    prepare: (size) => {
      const call = callOf('last', { a: 'x'.repeat((size - 1) * PIECE_BYTES) })
      return connected(Array.from({ length: size }, (_, at) => call.subarray(at * PIECE_BYTES, (at + 1) * PIECE_BYTES)))
    },
  },
  {
    name: 'WebSocket: calls of tools that do not exist',
    from: 'a script',
    unit: 'calls',
    sizes: [100, 1000, 10_000],
    limitBytes: CAPS.argBytes,
    prepare: (size) =>
      connected([...Array.from({ length: size - 1 }, (_, at) => callOf(`none${at}`, {})), callOf('last', {})]),
  },
]

async function connected(pieces: readonly Buffer[]): Promise<Prepared> {
  const act = (): Promise<unknown> => {
    const over = new AbortController()
    const execute = (): void => over.abort()
    const last = defineTool({ name: 'last', description: 'Ends.', input: { type: 'object' }, execute })
    const toolEndpoint = endpointThat(async (peer, request) => {
      peer.resume().write(acceptanceOf(request))
      for (const [at, piece] of pieces.entries()) {
        peer.write(piece)
        if (at % PIECES_OF_TURN === 0) await nextTurn()
      }
    })
    return new ScriptExecutor({ mode: 'interactive' }).run({
      sandbox: replayChannel(MARKER, { after: 'open', respond: ({ type }) => (type === 'cancel' ? DONE : undefined) }),
      script: 'pass',
      executionId: RUN.execution_id,
      tools: bridgedTools(prepareTools([last])),
      toolEndpoint,
      signal: over.signal,
    })
  }
  return { act, [Symbol.asyncDispose]: () => Promise.resolve() }
}
