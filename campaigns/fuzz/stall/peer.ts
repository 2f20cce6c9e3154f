import { createSandglass, type Sandglass } from '../../../src/index.ts'
import type { HostFrame } from '../../../src/protocol/index.ts'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Channel, Sandbox, SandboxEngine } from '../../../src/sandbox/index.ts'
import { replayChannel } from '../../../src/testing/index.ts'

/** The data of a hostile peer for one run: values become frames of the run, and bytes are sent unchanged. */
export type Answer = readonly (Readonly<Record<string, unknown>> | Uint8Array)[]

/** The bytes of a run's frames, with a placeholder for the id of the run. */
const PIECE_BYTES = 64 * 1024
const CALL = Buffer.from('{"type":"tool_call"')
const NO_ID = Buffer.from('"execution_id":"@"')

/** A JSON line whose `execution_id` is filled in when the run is known, so that a large one is encoded before the measurement. */
export function line(type: string, rest: string): Uint8Array {
  return Buffer.from(`{"type":${JSON.stringify(type)},"execution_id":"@",${rest}}\n`)
}

/** The public interface over a sandbox in memory that answers every script with the same bytes. */
export function hostOf(answer: Answer): Promise<Sandglass> {
  return createSandglass({ engine: engineOf(answer), poolSize: 1, maxUses: 1_000_000 })
}

function engineOf(answer: Answer): SandboxEngine {
  const create = (): Promise<Sandbox> => {
    const replay = replayChannel([], { after: 'open', respond: respondWith(answer) })
    return Promise.resolve(inPieces(replay))
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

/** The same sandbox, with bytes that come as from a pipe: at most 64 KiB in one turn of the event loop. */
function inPieces(sandbox: Sandbox): Sandbox {
  let rest: Uint8Array = new Uint8Array()
  const channel: Channel = {
    async receive() {
      await nextTurn()
      if (rest.length === 0) rest = (await sandbox.channel.receive()) ?? rest
      if (rest.length === 0) return null
      const piece = rest.subarray(0, PIECE_BYTES)
      rest = rest.subarray(PIECE_BYTES)
      return piece
    },
    send: (bytes) => sandbox.channel.send(bytes),
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

/** Answers a script with the frames, and ends the run when the host has answered each tool call among them. */
function respondWith(answer: Answer): (frame: HostFrame) => Uint8Array | undefined {
  const calls = answer.filter((part) =>
    part instanceof Uint8Array ? CALL.equals(part.subarray(0, CALL.length)) : part['type'] === 'tool_call',
  )
  let unanswered = 0
  return (frame) => {
    switch (frame.type) {
      case 'execute':
        unanswered = calls.length
        return Buffer.concat([
          ...answer.map((part) => ofRun(part, frame.execution_id)),
          ...(unanswered === 0 ? [doneOf(frame.execution_id)] : []),
        ])
      case 'tool_result':
        unanswered -= 1
        return unanswered === 0 ? doneOf(frame.execution_id) : undefined
      case 'check':
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
}

function jsonLine(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value)}\n`)
}

function ofRun(part: Answer[number], id: string): Uint8Array {
  if (!(part instanceof Uint8Array)) return jsonLine({ ...part, execution_id: id })
  const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
  const at = bytes.indexOf(NO_ID)
  if (at < 0) return part
  return Buffer.concat([
    bytes.subarray(0, at),
    Buffer.from(`"execution_id":${JSON.stringify(id)}`),
    bytes.subarray(at + NO_ID.length),
  ])
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
