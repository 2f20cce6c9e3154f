import { encodePayload, FrameSplitter } from '../../src/protocol/index.ts'
import {
  type Channel,
  ChunkQueue,
  type CpuQuota,
  DEFAULT_LIMITS,
  type Ending,
  type Sandbox,
} from '../../src/sandbox/index.ts'
import { ActivityWorkspace } from '../../src/workspace/index.ts'

/** A frame of the host, with the payload that came behind it. */
export interface HostSaid {
  readonly type: string
  readonly execution_id: string
  readonly [field: string]: unknown
  readonly payload?: string
}

/** A workspace whose sandbox is written by the test: it sees each frame of the host and sends any bytes. */
export class FakeWorkspace implements Channel {
  readonly said: HostSaid[] = []
  readonly ws: ActivityWorkspace
  isDestroyed = false
  /** Called for each frame of the host. */
  answer: (said: HostSaid, fake: FakeWorkspace) => void = () => {}
  /** Holds back every write of the host until it resolves. */
  gate: Promise<void> | undefined
  readonly #toHost = new ChunkQueue()
  readonly #fromHost = new FrameSplitter(64 * 1024 * 1024)
  readonly #closed = Promise.withResolvers<Ending>()

  constructor({
    trust = 'separate',
    idleTimeoutSec,
    cpu,
  }: { readonly trust?: 'separate' | 'shared'; readonly idleTimeoutSec?: number; readonly cpu?: CpuQuota } = {}) {
    const { memoryBytes, cpus, pids, diskBytes } = DEFAULT_LIMITS
    const destroy = async (): Promise<void> => {
      this.isDestroyed = true
      this.end({ cause: 'destroyed', exitCode: null, signal: 'SIGKILL', by: 'host' })
      await this.#closed.promise
    }
    const sandbox: Sandbox = {
      id: 'fake',
      info: {
        engine: 'fake',
        level: 'none',
        python: '3.12.0',
        network: 'none',
        limitsEnforced: [],
        limits: { memoryBytes, cpus, pids, diskBytes },
      },
      channel: this,
      ready: {
        type: 'ready',
        protocol: 2,
        python: '3.12.0',
        tools: { loaded: [], failed: [] },
        preload: { loaded: [], failed: [], deferred: [] },
        checks: { signal_scope: trust === 'separate' ? 'landlock' : 'scan' },
      },
      closed: this.#closed.promise,
      memoryKills: () => 0,
      ...(cpu === undefined
        ? {}
        : { liftCpuLimit: () => cpu.lift(), lowerCpuLimit: (cpus: number) => cpu.lower(cpus) }),
      destroy,
      [Symbol.asyncDispose]: destroy,
    }
    this.ws = new ActivityWorkspace(sandbox, { timeoutSec: 30, idleTimeoutSec })
  }

  receive(): Promise<Uint8Array | null> {
    return this.#toHost.take()
  }

  async send(bytes: Uint8Array): Promise<void> {
    if (this.gate !== undefined) await this.gate
    for (const { line, payload } of this.#fromHost.push(bytes)) {
      const frame = JSON.parse(String(line)) as HostSaid
      const said = payload === undefined ? frame : { ...frame, payload: String(payload) }
      this.said.push(said)
      this.answer(said, this)
    }
  }

  close(): void {
    this.#toHost.end()
  }

  /** Sends any bytes. */
  bytes(bytes: Uint8Array | string): void {
    this.#toHost.put(Buffer.from(bytes))
  }

  /** Sends frames. */
  frames(...frames: readonly object[]): void {
    for (const frame of frames) this.bytes(`${JSON.stringify(frame)}\n`)
  }

  /** Sends a piece of a stream. */
  output(id: string, stream: string, bytes: Uint8Array | string): void {
    this.bytes(encodePayload({ type: 'output', execution_id: id, stream }, Buffer.from(bytes)))
  }

  /** Sends the last frame of an activity. */
  done(id: string, fields: object = {}): void {
    const ending = { cause: 'exit', exit_code: 0, signal: null, by: 'script' }
    const last = { ending, error: null, result: null, duration_ms: 1, confirmed: true, ...fields }
    this.frames({ type: 'activity_done', execution_id: id, ...last })
  }

  /** Its process ended. */
  end(ending: Ending): void {
    this.#toHost.end()
    this.#closed.resolve(ending)
  }
}

/** Answers each program and cancellation as a harness does: it starts, and ends at once or when it is cancelled. */
export function obedient(programs: 'end' | 'stay' = 'stay'): FakeWorkspace['answer'] {
  return ({ type, execution_id: id }, fake) => {
    if (type === 'start') {
      fake.frames({ type: 'started', execution_id: id, pid: 7 })
      if (programs === 'end') fake.done(id)
    }
    if (type === 'cancel')
      fake.done(id, { ending: { cause: 'cancelled', exit_code: null, signal: 'SIGKILL', by: 'host' } })
  }
}
