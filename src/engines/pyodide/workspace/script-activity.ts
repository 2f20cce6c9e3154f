import {
  encodeFrame,
  type HostActivityFrame,
  type HostFrame,
  INPUT_WINDOW_BYTES,
  CAPS,
  LineSplitter,
} from '../../../protocol/index.ts'
import { type GuestCell, GuestRun } from '../guest-run.ts'
import type { Outbox } from '../outbox.ts'
import type { Spare } from '../spare.ts'
import { IncomingFiles, type OutgoingFiles } from './carried-files.ts'
import { joinRequest, readWorkspaceRequest } from './requests.ts'
import { FlowControlledOutbox } from './taken-lines.ts'
import type { FileNode, TreeBounds } from './tree.ts'

type ExecuteFrame = Extract<HostFrame, { type: 'execute' }>

/** The parts of a workspace that a script uses. */
export interface ScriptContext {
  readonly outbox: Outbox
  readonly bounds: TreeBounds
  /** Called when the request of a script is complete. */
  admit(activity: ScriptActivity, request: ExecuteFrame): void
}

/** The files and the instance of one run. */
export interface RunContext {
  readonly files: ReadonlyMap<number, FileNode>
  readonly cell?: GuestCell | undefined
  /** Resolves when the instance has ended. */
  readonly awaitEnd: () => Promise<{ readonly code: number | null; readonly signal: string | null }>
}

/** A script of a workspace, from its request to its last frame. */
export class ScriptActivity {
  readonly id: string
  readonly #context: ScriptContext
  readonly #head: ExecuteFrame | Extract<HostActivityFrame, { type: 'execute_in_parts' }>
  readonly #lines = new LineSplitter(CAPS.requestLineBytes)
  readonly #output: FlowControlledOutbox
  #body: Buffer[] = []
  #missing: number
  #ungranted = 0
  #run: GuestRun | undefined
  /** The instance into which the files are being copied. */
  #preparing: Spare | undefined
  #isPaused = false
  #isCancelled = false
  #isInterrupted = false
  readonly #cancelled = Promise.withResolvers<void>()

  constructor(head: ExecuteFrame | Extract<HostActivityFrame, { type: 'execute_in_parts' }>, context: ScriptContext) {
    this.id = head.execution_id
    this.#head = head
    this.#context = context
    this.#missing = head.type === 'execute_in_parts' ? head.body_bytes : 0
    this.#output = new FlowControlledOutbox(context.outbox, () => this.#updatePaused())
  }

  /** The session of a cell. */
  get sessionId(): string | undefined {
    return this.#head.session
  }

  get isCancelled(): boolean {
    return this.#isCancelled
  }

  /** Resolves when it is cancelled. */
  get cancelled(): Promise<void> {
    return this.#cancelled.promise
  }

  /** True if its whole request has been received. */
  get isComplete(): boolean {
    return this.#missing === 0
  }

  get guest(): GuestRun['guest'] | undefined {
    return this.#run?.guest ?? this.#preparing?.guest
  }

  begin(): void {
    if (this.#head.type === 'execute') this.#context.admit(this, this.#head)
  }

  input(bytes: Uint8Array): void {
    this.#ungranted += bytes.length
    if (this.#ungranted >= INPUT_WINDOW_BYTES / 4) {
      const credit = { type: 'credit', execution_id: this.id, stream: 'stdin', bytes: this.#ungranted }
      this.#context.outbox.put(Buffer.from(`${JSON.stringify(credit)}\n`))
      this.#ungranted = 0
    }
    if (this.#missing === 0 || this.#head.type === 'execute') return this.#takeLines(bytes)
    if (bytes.length > this.#missing) throw new Error('the body of a request is longer than its body_bytes')
    this.#body.push(Buffer.from(bytes)) // the sender reuses its buffer
    this.#missing -= bytes.length
    if (this.#missing > 0) return
    const request = joinRequest(this.#head, Buffer.concat(this.#body))
    this.#body = []
    this.#context.admit(this, request)
  }

  endInput(): void {
    // The input of a run is never closed.
  }

  credit(stream: string, bytes: number): void {
    if (stream === 'frames') this.#output.credit(bytes)
  }

  /** Passes on the answer to a call. */
  answer({ type, execution_id, id, ...rest }: Extract<HostFrame, { type: 'tool_result' }>): void {
    this.#run?.answer(encodeFrame({ type, execution_id, id, ...rest }))
  }

  reportToolTime({ executed_ms, executing }: Extract<HostFrame, { type: 'tool_time' }>): void {
    this.#run?.state.clock.report(executed_ms, executing)
  }

  /** Interrupts a cell, now or as soon as it runs. */
  interrupt(): void {
    this.#isInterrupted = true
    this.#run?.interrupt()
  }

  /** Pauses the output while the host does not read fast enough. */
  setPaused(isPaused: boolean): void {
    this.#isPaused = isPaused
    this.#updatePaused()
  }

  cancel(): void {
    this.#isCancelled = true
    this.#cancelled.resolve()
    this.#output.end()
    this.#preparing?.guest.kill()
    this.#run?.cancel()
  }

  stop(): void {
    this.#output.end()
    this.#run?.stop()
  }

  /**
   * Copies the files into an instance, before the time of the script begins.
   * @returns `restored`; `lost` if the instance ended; or the reason the instance refused the files.
   */
  async copyFiles(
    spare: Spare,
    files: OutgoingFiles,
    timeoutMs: number,
  ): Promise<'restored' | 'lost' | { readonly reason: string }> {
    this.#preparing = spare
    const { guest } = spare
    const timer = setTimeout(() => guest.kill(), timeoutMs)
    try {
      guest.send(files.message, ...files.contents)
      for (;;) {
        const next = await guest.control.next()
        if (next.done === true) return 'lost'
        const message = next.value
        if (message.type === 'restored') return 'restored'
        if (message.type === 'refused') return { reason: String(message.reason) }
      }
    } finally {
      clearTimeout(timer)
      this.#preparing = undefined
    }
  }

  /**
   * Runs the script.
   * @param options.files the files that the instance has, by their indices.
   * @param options.cell absent: a script, after which the instance ends.
   * @returns the last frame, without the fields that only the sandbox knows; the files of the script; and whether the instance
   * can run another cell.
   */
  async run(
    request: ExecuteFrame,
    spare: Spare,
    { files, cell, awaitEnd }: RunContext,
  ): Promise<{ readonly done: object; readonly incoming: IncomingFiles; readonly lives: boolean }> {
    const incoming = new IncomingFiles(files, this.#context.bounds)
    const run = (this.#run = new GuestRun(request, spare, this.#output, (message) => incoming.take(message), cell))
    this.#updatePaused()
    if (this.#isInterrupted) run.interrupt()
    try {
      await run.follow()
      const { state } = run
      const { code, signal } = state.hasEnded ? { code: null, signal: null } : await awaitEnd()
      const { tree, problem } = incoming
      if (tree === undefined) state.warnings.push({ code: 'files_not_kept', message: explainNotKept(problem) })
      return { done: run.conclude(code, signal), incoming, lives: run.lives }
    } finally {
      run.stop()
      this.#output.end()
    }
  }

  #takeLines(bytes: Uint8Array): void {
    for (const line of this.#lines.push(bytes)) {
      const frame = readWorkspaceRequest(line)
      if (frame?.type === 'tool_result' && frame.execution_id === this.id) this.answer(frame)
    }
  }

  #updatePaused(): void {
    this.#run?.setPaused(this.#isPaused || this.#output.isFull)
  }
}

function explainNotKept(problem: string | undefined): string {
  const why =
    problem === undefined
      ? 'its process ended before it could send its files'
      : `the instance sent files that cannot be kept (${problem})`
  return `the workspace has the files from before this run: ${why}`
}
