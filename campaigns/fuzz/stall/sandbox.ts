import { setImmediate as nextTurn } from 'node:timers/promises'
import { encodePayload } from '../../../src/protocol/index.ts'
import { awaitReady, ChunkQueue } from '../../../src/sandbox/index.ts'
import { FakeWorkspace } from '../../../test/support/fake-workspace.ts'
import { type EntryPoint, KiB, keys, many, MiB } from './entry-point.ts'
import { hostOf, line } from './peer.ts'

const nothing = (): Promise<void> => Promise.resolve()

/** First frames of a sandbox. Their length is bounded by 1 MiB. */
const READY: readonly { name: string; unit: string; sizes: readonly number[]; loaded: (size: number) => string }[] = [
  { name: 'modules', unit: 'modules', sizes: [1000, 10_000, 200_000], loaded: (n) => many(n, '"a"') },
  { name: 'keys in place of modules', unit: 'keys', sizes: [1000, 20_000, 60_000], loaded: keys },
  {
    name: 'a long name',
    unit: 'characters',
    sizes: [10_000, 100_000, 1_000_000],
    loaded: (n) => `["${'x'.repeat(n)}"]`,
  },
]

const READY_ENTRY_POINTS: readonly EntryPoint[] = READY.map(({ loaded, ...rest }) => ({
  ...rest,
  name: `ready: ${rest.name}`,
  from: 'a script',
  limitBytes: MiB,
  prepare: (size) => {
    const lists = `{"loaded":${loaded(size)},"failed":[]}`
    const bytes = Buffer.from(
      `{"type":"ready","protocol":2,"python":"3.12.0","tools":${lists},"preload":{"loaded":[],"failed":[],"deferred":[]},"checks":{}}\n`,
    )
    return Promise.resolve({
      act: () => {
        const queue = new ChunkQueue()
        queue.put(bytes)
        queue.end()
        const channel = { receive: () => queue.take(), send: nothing, close: () => undefined }
        return awaitReady(channel, { timeoutMs: 5000 }).catch((error: unknown) => error)
      },
      [Symbol.asyncDispose]: nothing,
    })
  },
}))

const VIOLATION = '{"code":"unknown_name","line":1,"column":0,"message":"m","hint":null}'
const CHECKS: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  violations: (size: number) => string
}[] = [
  { name: 'violations', unit: 'violations', sizes: [100, 1000, 10_000], violations: (n) => many(n, VIOLATION) },
  {
    name: 'a long message',
    unit: 'characters',
    sizes: [10_000, 100_000, 900_000],
    violations: (n) => `[${VIOLATION.replace('"m"', `"${'x '.repeat(n / 2)}"`)}]`,
  },
  { name: 'keys in place of violations', unit: 'keys', sizes: [1000, 20_000, 80_000], violations: keys },
]

const CHECK_ENTRY_POINTS: readonly EntryPoint[] = CHECKS.map(({ violations, ...rest }) => ({
  ...rest,
  name: `check: ${rest.name}`,
  from: 'a script',
  limitBytes: MiB,
  prepare: async (size) => {
    const host = await hostOf([], [line('check_result', `"violations":${violations(size)}`)])
    return {
      act: () => host.check('emit_result(1)').catch((error: unknown) => error),
      [Symbol.asyncDispose]: () => host.close(),
    }
  },
}))

/** A workspace whose sandbox sends its bytes as through a pipe: at most 64 KiB in one turn of the event loop, made in that turn. */
class PipedWorkspace extends FakeWorkspace {
  #pieces: Iterator<Uint8Array, undefined> | undefined

  /** Sends prepared bytes after the previous ones. */
  sendPieces(pieces: Iterator<Uint8Array, undefined>): void {
    this.#pieces = pieces
  }

  override async receive(): Promise<Uint8Array | null> {
    await nextTurn()
    const frames: Uint8Array[] = []
    for (let bytes = 0; bytes < 64 * KiB;) {
      const next = this.#pieces?.next().value
      if (next === undefined) break
      frames.push(next)
      bytes += next.length
    }
    return frames.length > 0 ? Buffer.concat(frames) : super.receive()
  }
}

/** Sends the same frames for each start of a program: its start, many pieces of output, and its end. */
const WORKSPACES: readonly {
  name: string
  unit: string
  sizes: readonly number[]
  piece: (id: string) => Uint8Array
}[] = [
  {
    name: 'output of no activity',
    unit: 'frames',
    sizes: [1000, 10_000, 50_000],
    piece: () => outputOf('nobody'),
  },
  { name: 'small pieces of output', unit: 'pieces', sizes: [1000, 10_000, 50_000], piece: outputOf },
  {
    name: 'lines that are no frames',
    unit: 'lines',
    sizes: [1000, 10_000, 100_000],
    piece: () => Buffer.from('{"a":[[[[\n'),
  },
  {
    name: 'ends full of keys',
    unit: 'ends',
    sizes: [1, 3, 10],
    piece: (id) =>
      Buffer.from(`{"type":"activity_done","execution_id":${JSON.stringify(`${id}x`)},"result":${keys(50_000)}}\n`),
  },
]

function outputOf(id: string): Uint8Array {
  return encodePayload({ type: 'output', execution_id: id, stream: 'stdout' }, Buffer.from('x'))
}

function* times(count: number, piece: Uint8Array, last: Uint8Array): Generator<Uint8Array, undefined> {
  for (let at = 0; at < count; at += 1) yield piece
  yield last
}

const WORKSPACE_ENTRY_POINTS: readonly EntryPoint[] = WORKSPACES.map(({ piece, ...rest }) => ({
  ...rest,
  name: `workspace: ${rest.name}`,
  from: 'a script',
  limitBytes: MiB,
  prepare: (size) =>
    Promise.resolve({
      act: async () => {
        const fake = new PipedWorkspace()
        fake.answer = ({ type, execution_id: id }) => {
          if (type !== 'start') return
          const ending = { cause: 'exit', exit_code: 0, signal: null, by: 'script' }
          const last = {
            type: 'activity_done',
            execution_id: id,
            ending,
            error: null,
            result: null,
            duration_ms: 1,
            confirmed: true,
          }
          fake.frames({ type: 'started', execution_id: id, pid: 7 })
          fake.sendPieces(times(size, piece(id), Buffer.from(`${JSON.stringify(last)}\n`)))
        }
        const ended = await fake.ws.exec('work').catch((error: unknown) => error)
        await fake.ws.close()
        return ended
      },
      [Symbol.asyncDispose]: nothing,
    }),
}))

/** Frames that a sandbox sends outside of runs. */
export const SANDBOX_ENTRY_POINTS: readonly EntryPoint[] = [
  ...READY_ENTRY_POINTS,
  ...CHECK_ENTRY_POINTS,
  ...WORKSPACE_ENTRY_POINTS,
]
