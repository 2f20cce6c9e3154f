import type { SharedChannel } from '../executor/index.ts'
import { FRAMES_WINDOW_BYTES, type LineInParts, partsOfExecute } from '../protocol/index.ts'
import { type Channel, ChunkQueue, type Ending, type Sandbox } from '../sandbox/index.ts'
import type { Activity, ActivityEnd } from './activity.ts'
import { liftCpuLimit, lowerCpuLimit } from './cpu-share.ts'
import type { Link } from './link.ts'

/** Lines up to this size are sent before the data of other activities; longer ones are sent in pieces that take turns. */
const MAX_WHOLE_LINE_BYTES = 64 * 1024
/** The bytes of a frame around `maxOutputBytes` of text. */
const LINE_SLACK_BYTES = 64 * 1024

/** The view that one script has of the sandbox of its workspace. */
export interface RunSandbox extends Sandbox {
  /** Releases the workspace, when the run has settled. */
  release(): Promise<void>
}

/** The properties of a run that its channel needs beforehand. */
export interface RunFacts {
  readonly executionId?: string | undefined
  /** The longest line that it may send. */
  readonly maxOutputBytes: number
  /** True for a cell. */
  readonly ofSession: boolean
}

/**
 * A sandbox whose channel carries the lines of one run. The executor does not know that others share the
 * sandbox: its `destroy` ends only the run.
 * @throws SandglassError as {@link Link.open} does.
 */
export function openRun(
  sandbox: Sandbox,
  link: Link,
  { executionId, maxOutputBytes, ofSession }: RunFacts,
): {
  readonly sandbox: RunSandbox
  readonly executionId: string
} {
  link.allowLines(maxOutputBytes + LINE_SLACK_BYTES)
  const lines = new RunLines(link, maxOutputBytes)
  const activity = link.open(lines, {
    window: FRAMES_WINDOW_BYTES,
    hasProcesses: true,
    ofSession,
    ...(executionId === undefined ? {} : { id: executionId }),
  })
  lines.begin(activity)
  return { sandbox: new SharedSandbox(sandbox, link, lines), executionId: activity.id }
}

/** The lines of one run, in both directions: the channel of its executor. */
class RunLines implements SharedChannel {
  readonly #link: Link
  readonly #queue = new ChunkQueue()
  readonly #maxHeld: number
  readonly #over = Promise.withResolvers<void>()
  readonly #closed = Promise.withResolvers<Ending>()
  #activity: Activity | undefined
  #held = 0
  #begun = false
  #isOver = false

  constructor(link: Link, maxOutputBytes: number) {
    this.#link = link
    // The sandbox stops at the window, but never splits a line.
    this.#maxHeld = FRAMES_WINDOW_BYTES + 2 * Math.max(maxOutputBytes, FRAMES_WINDOW_BYTES * 4)
  }

  begin(activity: Activity): void {
    this.#activity = activity
  }

  onLine(line: Buffer, isLast: boolean): void {
    const bytes = Buffer.allocUnsafe(line.length + 1)
    line.copy(bytes)
    bytes[line.length] = 0x0a
    this.#held += bytes.length
    if (this.#held > this.#maxHeld) this.#link.lose('it sent more lines of a run than its window allows')
    else this.#queue.put(bytes)
    if (isLast) this.#end()
  }

  onEnd(end: ActivityEnd): void {
    // The end of the workspace cancels its run; a lost sandbox reports its own end.
    if ('lost' in end && end.lost.code !== 'workspace_lost')
      this.#closed.resolve({ cause: 'cancelled', exitCode: null, signal: null, by: 'host', message: end.lost.message })
    this.#end()
  }

  /** Resolves if the workspace is closed during the run. */
  get closed(): Promise<Ending> {
    return this.#closed.promise
  }

  async receive(): Promise<Uint8Array | null> {
    const bytes = await this.#queue.take()
    if (bytes !== null) {
      this.#held -= bytes.length
      this.#activity?.credit('frames', bytes.length)
    }
    return bytes
  }

  async send(bytes: Uint8Array): Promise<void> {
    this.#begun = true
    if (bytes.length <= MAX_WHOLE_LINE_BYTES) await this.#link.outbound.send(bytes)
    else await this.#activity?.write(bytes)
  }

  async sendRequest(request: LineInParts): Promise<void> {
    if (request.line.length <= MAX_WHOLE_LINE_BYTES) {
      await this.send(request.line)
      return
    }
    const { head, body } = partsOfExecute(request)
    // Sent as one line, however long: the sandbox accepts input only for a run that it knows.
    this.#begun = true
    await this.#link.outbound.send(head)
    for (const piece of body) await this.#activity?.write(piece)
  }

  close(): void {
    this.#end()
  }

  /** Ends the run, if it is still in progress; resolves when the sandbox has confirmed that, or is lost. */
  async stop(): Promise<void> {
    const activity = this.#activity
    if (activity === undefined) return
    // The sandbox does not know a run whose request was not sent.
    if (this.#begun && !this.#isOver) activity.cancel()
    else this.#end()
    await this.#over.promise
    this.#link.forget(activity)
  }

  #end(): void {
    this.#isOver = true
    this.#queue.end()
    this.#over.resolve()
  }
}

/** The workspace's sandbox, as one run sees it. */
class SharedSandbox implements RunSandbox {
  readonly #sandbox: Sandbox
  readonly #link: Link
  readonly #lines: RunLines
  /** The changes of the CPU limit for the run, which end with it. */
  readonly #limits = new Set<AsyncDisposable>()
  readonly lowerCpuLimit?: NonNullable<Sandbox['lowerCpuLimit']>

  constructor(sandbox: Sandbox, link: Link, lines: RunLines) {
    this.#sandbox = sandbox
    this.#link = link
    this.#lines = lines
    if (sandbox.lowerCpuLimit !== undefined)
      this.lowerCpuLimit = async (cpus) => this.#keep(await lowerCpuLimit(sandbox, link, cpus))
  }

  get id(): string {
    return this.#sandbox.id
  }

  get info(): Sandbox['info'] {
    return this.#sandbox.info
  }

  get ready(): Sandbox['ready'] {
    return this.#sandbox.ready
  }

  get closed(): Promise<Ending> {
    return Promise.race([this.#lines.closed, this.#sandbox.closed])
  }

  get channel(): Channel {
    return this.#lines
  }

  memoryKills(): number | null {
    return this.#sandbox.memoryKills()
  }

  recovered(): Promise<void> {
    return this.#sandbox.recovered?.() ?? Promise.resolve()
  }

  liftCpuLimit(): AsyncDisposable {
    return this.#keep(liftCpuLimit(this.#sandbox, this.#link))
  }

  /** Ends the run, never the workspace: the sandbox is lost only if it does not confirm the end of the run. */
  async destroy(): Promise<void> {
    await this.#lines.stop()
    // A run that was given up, as after an error in a callback, has not restored them.
    await Promise.allSettled([...this.#limits].map((limit) => limit[Symbol.asyncDispose]()))
  }

  release(): Promise<void> {
    return this.destroy()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.destroy()
  }

  #keep(limit: AsyncDisposable): AsyncDisposable {
    this.#limits.add(limit)
    return limit
  }
}
