import { createSandglass, type Sandglass } from '../../../src/index.ts'
import type { HostFrame } from '../../../src/protocol/index.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Channel, Sandbox, SandboxEngine } from '../../../src/sandbox/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'

/** The data of a hostile peer for one run: values become frames of the run, and bytes are sent unchanged. */
export type Answer = readonly (Readonly<Record<string, unknown>> | Uint8Array)[]

const PIECE_BYTES = 64 * 1024
/** Wakes a host that reads; the frames follow. */
const BLANK_LINE = Buffer.from('\n')
const CALL = Buffer.from('{"type":"tool_call"')
const NO_ID = Buffer.from('"execution_id":"@"')

/** A JSON line whose `execution_id` is filled in when the run is known, so that a large one is encoded before the measurement. */
export function line(type: string, rest: string): Uint8Array {
  return Buffer.from(`{"type":${JSON.stringify(type)},"execution_id":"@",${rest}}\n`)
}

/** The public interface over a sandbox in memory that answers every script, and every check, with the same bytes. */
export function hostOf(answer: Answer, check?: Answer): Promise<Sandglass> {
  return createSandglass({ engine: engineOf(answer, check), poolSize: 1, maxUses: 1_000_000 })
}

function engineOf(answer: Answer, check: Answer | undefined): SandboxEngine {
  const create = (): Promise<Sandbox> => {
    const peer = new Peer(answer, check)
    return Promise.resolve(peer.wrap(replayChannel([], { after: 'open', respond: (frame) => peer.respond(frame) })))
  }
  const capabilities = {
    processes: true,
    threads: true,
    preload: true,
    packages: true,
    toolsDir: true,
    systemCallFilter: true,
    uidPerSandbox: true,
  }
  return {
    name: 'peer',
    create,
    report: () =>
      Promise.resolve({
        engine: 'peer',
        usable: true,
        level: 'none',
        reasons: [],
        limitsEnforced: [],
        network: 'none',
        capabilities,
        probes: {},
      }),
    close: () => Promise.resolve(),
  }
}

/**
 * One sandbox: answers a script with the frames, and ends the run when the host has answered each tool call among them. Its
 * bytes come as from a pipe: at most 64 KiB in one turn of the event loop, made in that turn.
 */
class Peer {
  readonly #answer: Answer
  readonly #check: Answer | undefined
  readonly #calls: number
  /** The frames of the run that are not sent yet. */
  #frames: Iterator<Uint8Array, undefined> | undefined
  #rest: Uint8Array = new Uint8Array()
  /** A part that is sent without a copy of it, after what was made before it. */
  #large: Uint8Array | undefined
  #unanswered = 0

  constructor(answer: Answer, check: Answer | undefined) {
    this.#answer = answer
    this.#check = check
    this.#calls = answer.filter((part) =>
      part instanceof Uint8Array ? CALL.equals(part.subarray(0, CALL.length)) : part['type'] === 'tool_call',
    ).length
  }

  wrap(sandbox: Sandbox): Sandbox {
    const channel: Channel = {
      receive: async () => {
        await nextTurn()
        if (this.#rest.length === 0)
          this.#rest = this.#takeLarge() ?? this.#next() ?? (await sandbox.channel.receive()) ?? this.#rest
        if (this.#rest.length === 0) return this.#next() ?? null
        const piece = this.#rest.subarray(0, PIECE_BYTES)
        this.#rest = this.#rest.subarray(PIECE_BYTES)
        return piece
      },
      send: (bytes) => sandbox.channel.send(withoutAnswer(bytes)),
      close: () => sandbox.channel.close(),
    }
    return new Proxy(sandbox, {
      get(target, name) {
        if (name === 'channel') return channel
        const value: unknown = Reflect.get(target, name, target)
        return typeof value === 'function' ? (value as (...args: unknown[]) => unknown).bind(target) : value
      },
    })
  }

  respond(frame: HostFrame): Uint8Array | undefined {
    switch (frame.type) {
      case 'execute':
        this.#unanswered = this.#calls
        this.#frames = framesOf(this.#answer, frame.execution_id, this.#calls === 0)
        return BLANK_LINE
      case 'tool_result':
        this.#unanswered -= 1
        return this.#unanswered === 0 ? doneOf(frame.execution_id) : undefined
      case 'check':
        if (this.#check !== undefined) {
          this.#frames = framesOf(this.#check, frame.execution_id, true)
          return BLANK_LINE
        }
        return Buffer.concat([
          jsonLine({ type: 'check_result', execution_id: frame.execution_id, violations: [] }),
          doneOf(frame.execution_id),
        ])
      case 'ping':
        return jsonLine({ type: 'pong', nonce: frame.nonce })
      case 'reset':
        return jsonLine({ type: 'reset_done', nonce: frame.nonce, reusable: true })
      default:
        return undefined
    }
  }

  #next(): Uint8Array | undefined {
    const frames: Uint8Array[] = []
    let bytes = 0
    while (bytes < PIECE_BYTES) {
      const frame = this.#frames?.next().value
      if (frame === undefined) break
      if (bytes + frame.length > 2 * PIECE_BYTES) {
        // A large part is sent behind the small ones, in pieces of its own.
        this.#large = frame
        break
      }
      frames.push(frame)
      bytes += frame.length
    }
    if (bytes === 0) return this.#takeLarge()
    return Buffer.concat(frames, bytes)
  }

  #takeLarge(): Uint8Array | undefined {
    const large = this.#large
    this.#large = undefined
    return large
  }
}

/**
 * Replaces the value of a large answer by null. A real sandbox reads answers in a process of its own; here, their text and value
 * would count as growth of the host.
 */
function withoutAnswer(bytes: Uint8Array): Uint8Array {
  if (bytes.length <= PIECE_BYTES) return bytes
  const head = /^\{"type":"tool_result","execution_id":"([^"\\]+)","id":"([^"\\]+)",/.exec(
    Buffer.from(bytes.buffer, bytes.byteOffset, 512).toString('latin1'),
  )
  if (head === null) return bytes
  const [, execution_id, id] = head
  return jsonLine({ type: 'tool_result', execution_id, id, result: null })
}

function* framesOf(answer: Answer, id: string, ends: boolean): Generator<Uint8Array, undefined> {
  for (const part of answer) yield* ofRun(part, id)
  if (ends) yield doneOf(id)
}

function jsonLine(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

/** The line in parts that share its memory: copies would count as growth of the host. */
function ofRun(part: Answer[number], id: string): readonly Uint8Array[] {
  if (!(part instanceof Uint8Array)) return [jsonLine({ ...part, execution_id: id })]
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  const at = bytes.indexOf(NO_ID)
  if (at < 0) return [part]
  const filled = Buffer.from(`"execution_id":${JSON.stringify(id)}`)
  return [bytes.subarray(0, at), filled, bytes.subarray(at + NO_ID.length)]
}

function doneOf(id: string): Uint8Array {
  const done = {
    type: 'script_done',
    execution_id: id,
    ending: { cause: 'exit', exit_code: 0, signal: null, by: 'script' },
    reusable: true,
    use: 1,
  }
  return jsonLine(done)
}
