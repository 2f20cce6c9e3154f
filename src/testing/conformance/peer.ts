import assert from 'node:assert/strict'
import { isDeepStrictEqual } from 'node:util'
import {
  decodeLine,
  encodeFrame,
  type HarnessFrame,
  harnessFrames,
  type HostFrame,
  hostFrames,
  LineSplitter,
} from '../../protocol/index.ts'
import type { Sandbox } from '../../sandbox/index.ts'
import { truncate } from '../../support/index.ts'

type Execute = Extract<HostFrame, { type: 'execute' }>
type ToolCall = Extract<HarnessFrame, { type: 'tool_call' }>
type Done = Extract<HarnessFrame, { type: 'script_done' }>

/** The method that every schema of the protocol has. */
interface Schema {
  safeParse(value: unknown): { readonly success: boolean; readonly data?: unknown }
}

const MAX_LINE = 80 * 1024 * 1024
const SILENCE_MS = 40_000

/** The frames of one run, in order; `done` is the last. */
export interface RunFrames {
  /** All frames of this run except `script_done`, without the execution id. */
  readonly events: readonly Readonly<Record<string, unknown>>[]
  readonly done: Done
  /** The data of the first `final_result`. */
  readonly result: unknown
  readonly stdout: string
  readonly stderr: string
}

/** The host's end of a channel, without an executor: frames as they are on the wire. */
export class HarnessPeer {
  /** Lines that were not frames of the protocol, each with the reason. */
  readonly violations: string[] = []
  readonly sandbox: Sandbox
  readonly #splitter = new LineSplitter(MAX_LINE)
  readonly #frames: HarnessFrame[] = []
  #runs = 0

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox
  }

  async send(...frames: readonly HostFrame[]): Promise<void> {
    for (const frame of frames) {
      const schema: Schema = hostFrames[frame.type]
      assert.ok(schema.safeParse(frame).success, `the test itself sends an invalid frame: ${formatFrames(frame)}`)
      await this.sandbox.channel.send(encodeFrame(frame))
    }
  }

  async sendRaw(bytes: Uint8Array | string): Promise<void> {
    await this.sandbox.channel.send(typeof bytes === 'string' ? Buffer.from(bytes) : bytes)
  }

  /** The next frame, or null at the end of the channel. */
  async next(): Promise<HarnessFrame | null> {
    while (this.#frames.length === 0) {
      const chunk = await withinSilence(this.sandbox.channel.receive())
      if (chunk === null) return null
      for (const line of this.#splitter.push(chunk)) this.#take(line)
    }
    return this.#frames.shift() ?? null
  }

  /** The next frame, which must be of this type. */
  async expect<Type extends HarnessFrame['type']>(type: Type): Promise<Extract<HarnessFrame, { type: Type }>> {
    const frame = await this.next()
    assert.equal(frame?.type, type, `a frame of type ${type} was expected, not ${JSON.stringify(frame)?.slice(0, 500)}`)
    return frame as Extract<HarnessFrame, { type: Type }>
  }

  /** An `execute` with defaults, under an id of its own. */
  request(script: string, options: Partial<Execute> = {}): Execute {
    this.#runs += 1
    return {
      type: 'execute',
      execution_id: `run-${this.#runs}`,
      script,
      mode: 'interactive',
      timeout_sec: 30,
      max_output_bytes: 16 * 1024 * 1024,
      inputs: {},
      secrets: {},
      required_secrets: [],
      collect: [],
      limits: {},
      ...options,
    }
  }

  /** Runs a script and reads until it is done. */
  async run(script: string, options: Partial<Execute> = {}): Promise<RunFrames> {
    const request = this.request(script, options)
    await this.send(request)
    return this.finish(request.execution_id)
  }

  /** Reads until the run of this id is done; tool calls are answered meanwhile. Frames of another run are a failure. */
  async finish(id: string, answer?: (call: ToolCall) => Promise<void>): Promise<RunFrames> {
    const events: Record<string, unknown>[] = []
    for (;;) {
      const frame = await this.next()
      if (frame === null) return assert.fail(`the channel ended in the middle of ${id}: ${formatFrames(events)}`)
      assert.ok('execution_id' in frame, `a frame of no run came in the middle of ${id}: ${formatFrames(frame)}`)
      assert.equal(frame.execution_id, id, `a frame of another run came: ${formatFrames(frame)}`)
      if (frame.type === 'script_done') return toRunFrames(events, frame)
      const { execution_id: _, ...event } = frame
      events.push(event)
      if (frame.type === 'tool_call') await answer?.(frame)
    }
  }

  /** Sends a ping, and fails unless the next frame is its answer. */
  async ping(nonce: string): Promise<void> {
    await this.send({ type: 'ping', nonce })
    assert.deepEqual(await this.next(), { type: 'pong', nonce })
  }

  /** Resets the sandbox. True if it was idle and reports that it can be reused; no frame is then unread. */
  async canServe(): Promise<boolean> {
    const reset = { type: 'reset', nonce: `reset-${this.#runs}` } as const
    try {
      await this.send(reset)
      return isDeepStrictEqual(await this.next(), { ...reset, type: 'reset_done', reusable: true })
    } catch {
      return false // it has ended
    }
  }

  #take(line: Uint8Array): void {
    const decoded = decodeLine(line)
    if (decoded.kind === 'blank') return
    if (decoded.kind !== 'frame') {
      const reason = decoded.kind === 'unknown' ? decoded.reason : decoded.kind
      this.violations.push(`${reason}: ${Buffer.from(line).toString('utf8').slice(0, 300)}`)
      return
    }
    const raw = JSON.parse(Buffer.from(line).toString('utf8')) as Record<string, unknown>
    const schema: Schema = harnessFrames[decoded.frame.type]
    const known = schema.safeParse(raw).data as Record<string, unknown>
    const dropped = Object.keys(raw).filter((name) => !isDeepStrictEqual(raw[name], known[name]))
    if (dropped.length > 0)
      this.violations.push(`${decoded.frame.type}: fields outside of the schema: ${dropped.join(', ')}`)
    this.#frames.push(decoded.frame)
  }
}

/** The ending of a run whose script exited by itself. */
export function endingByExit(code = 0): NonNullable<Done['ending']> {
  return { cause: 'exit', exit_code: code, signal: null, by: 'script' }
}

/** A `script_done` without its times, and without what a harness may leave out. */
export function timeless(
  done: Done,
): Omit<Done, 'duration_ms' | 'execution_id' | 'memory_kills' | 'cpu_time_ms' | 'type'> {
  const { duration_ms: _, execution_id: __, type: ___, memory_kills: ____, cpu_time_ms: _____, ...rest } = done
  return rest
}

/** The number of OOM kills in a run, as counted by the harness or the engine. */
export function memoryKillsIn(done: Done, sandbox: Sandbox): number {
  return (
    done.memory_kills ?? sandbox.memoryKills() ?? assert.fail('it enforces a memory limit, and nothing counts kills')
  )
}

/** A Python script without the common indent of its lines. */
export function python(strings: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  const lines = String.raw({ raw: strings.raw }, ...values).split('\n')
  const indents = lines.filter((line) => line.trim() !== '').map((line) => /^ */.exec(line)?.[0].length ?? 0)
  const common = Math.min(...indents)
  return lines.map((line) => line.slice(common)).join('\n')
}

function toRunFrames(events: readonly Record<string, unknown>[], done: Done): RunFrames {
  const textOf = (type: string): string =>
    events
      .filter((event) => event['type'] === type)
      .map((event) => String(event['text']))
      .join('')
  const result = events.find((event) => event['type'] === 'final_result')?.['data']
  return { events, done, result, stdout: textOf('stdout'), stderr: textOf('stderr') }
}

function formatFrames(value: unknown): string {
  return truncate(JSON.stringify(value), 2000)
}

async function withinSilence<T>(promise: Promise<T>): Promise<T> {
  const { promise: silence, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => reject(new Error(`the harness was silent for ${SILENCE_MS} ms`)), SILENCE_MS)
  try {
    return await Promise.race([promise, silence])
  } finally {
    clearTimeout(timer)
  }
}
