import { type HostActivityFrame, INPUT_WINDOW_BYTES } from '../../../protocol/index.ts'
import type { Outbox } from '../outbox.ts'
import { FileError } from './file-error.ts'
import { Flow } from './flow.ts'
import { digest, entryOf, list } from './listing.ts'
import { PackIntake, sendPack } from './pack.ts'
import type { WorkspaceTree } from './tree.ts'

/** The frames that begin an operation on files. */
export type FileRequest = Extract<
  HostActivityFrame,
  {
    type: 'files_write' | 'files_read' | 'file_list' | 'file_stat' | 'file_make' | 'file_remove' | 'file_digest'
  }
>

/** The parts of a workspace that an operation on files uses. */
export interface FileContext {
  readonly tree: WorkspaceTree
  readonly outbox: Outbox
  /** @throws FileError while a script runs: its files are in its process. */
  assertQuiet(): void
  onOver(id: string): void
}

/** An operation on the files of a workspace, from its request to its last frame. */
export class FileActivity {
  readonly id: string
  readonly #request: FileRequest
  readonly #context: FileContext
  readonly #flow: Flow
  readonly #intake: PackIntake
  readonly #startedAt = performance.now()
  #ungranted = 0
  #isOver = false

  constructor(request: FileRequest, context: FileContext) {
    this.id = request.execution_id
    this.#request = request
    this.#context = context
    this.#flow = new Flow(this.id, context.outbox, 'window' in request ? request.window : 0)
    this.#intake = new PackIntake(context.tree, (write) => {
      context.assertQuiet()
      write()
    })
  }

  /** Always undefined: no instance serves it, because the host has the files. */
  get guest(): undefined {
    return undefined
  }

  begin(): void {
    if (this.#request.type === 'files_write') return
    void this.#work()
  }

  credit(_stream: string, bytes: number): void {
    this.#flow.grant(bytes)
  }

  input(bytes: Uint8Array): void {
    if (!this.#try(() => this.#intake.feed(bytes))) return
    this.#ungranted += bytes.length
    if (this.#ungranted < INPUT_WINDOW_BYTES / 4) return
    this.#send({ type: 'credit', stream: 'stdin', bytes: this.#ungranted })
    this.#ungranted = 0
  }

  endInput(): void {
    if (this.#try(() => this.#intake.finish())) this.#finish(null, this.#describeWritten())
  }

  cancel(): void {
    this.#fail(new FileError('cancelled', 'the activity was cancelled'))
  }

  /** Stops sending, because the workspace ends. */
  stop(): void {
    this.#isOver = true
    this.#flow.end()
  }

  async #work(): Promise<void> {
    try {
      this.#context.assertQuiet()
      const result = await this.#serve()
      if (!this.#flow.isOver) this.#finish(null, result)
    } catch (error) {
      this.#fail(error instanceof FileError ? error : new FileError('io', String(error)))
    }
  }

  async #serve(): Promise<unknown> {
    const request = this.#request
    const { tree } = this.#context
    switch (request.type) {
      case 'files_read': {
        const { paths, max_file_bytes: maxFileBytes, max_total_bytes: maxTotalBytes } = request
        await sendPack(tree, paths, { maxFileBytes, maxTotalBytes }, this.#flow)
        return null
      }
      case 'file_list':
        return list(tree, request, this.#flow)
      case 'file_digest':
        return digest(tree, request.path, this.#flow)
      case 'file_stat':
        return entryOf(request.path, tree.find(request.path, false))
      case 'file_make':
        return tree.make(request.path, request.mode) ?? null
      case 'file_remove':
        return tree.remove(request.path, request.recursive) ?? null
      case 'files_write':
        return null // its content is received as input
    }
  }

  /** Runs a step of a write. Returns false if it failed, which ends it. */
  #try(step: () => void): boolean {
    if (this.#isOver) return false
    try {
      step()
      return true
    } catch (error) {
      this.#fail(error instanceof FileError ? error : new FileError('io', String(error)))
      return false
    }
  }

  #describeWritten(): object {
    return { files: this.#intake.files, bytes: this.#intake.bytes }
  }

  #fail({ code, message }: FileError): void {
    this.#intake.abort()
    this.#finish({ code, message }, this.#request.type === 'files_write' ? this.#describeWritten() : null)
  }

  #finish(error: { readonly code: string; readonly message: string } | null, result: unknown): void {
    if (this.#isOver) return
    this.stop()
    const duration_ms = Math.round((performance.now() - this.#startedAt) * 1000) / 1000
    this.#send({ type: 'activity_done', ending: null, error, result: result ?? null, duration_ms, confirmed: true })
    this.#context.onOver(this.id)
  }

  #send({ type, ...fields }: { readonly type: string; readonly [field: string]: unknown }): void {
    const frame = { type, execution_id: this.id, ...fields }
    this.#context.outbox.put(Buffer.from(`${JSON.stringify(frame)}\n`))
  }
}
