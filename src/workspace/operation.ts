import { SandglassError } from '../errors/index.ts'
import type { ActivityDoneFrame, ActivityStream, EntryOnWire, HostActivityFrame } from '../protocol/index.ts'
import { type Activity, type ActivityEnd, type ActivityHandler, OUTPUT_WINDOW_BYTES } from './activity.ts'
import { failureOf } from './failures.ts'
import type { Link } from './link.ts'

/** The frame that begins an operation; its activity adds the id. */
export type Question = HostActivityFrame extends infer Frame
  ? Frame extends { execution_id: string }
    ? Omit<Frame, 'execution_id'>
    : never
  : never

/** A part of the answer to an operation, in order. */
export type Answer =
  | { readonly kind: 'bytes'; readonly bytes: Buffer; readonly size: number }
  | { readonly kind: 'entries'; readonly entries: readonly EntryOnWire[]; readonly size: number }

/** One operation on the files of a workspace: a question, its answers, and an end. */
export class Operation implements ActivityHandler {
  readonly activity: Activity
  /** Resolves when it has ended, also after a failure. */
  readonly over: Promise<unknown>
  readonly #what: string
  readonly #signal: AbortSignal | undefined
  readonly #done = Promise.withResolvers<ActivityDoneFrame>()
  readonly #onAbort = (): void => this.activity.cancel()
  #answers: Answer[] = []
  #news = Promise.withResolvers<void>()
  #isOver = false

  /** @throws SandglassError as {@link Link.open} does, and `aborted`. */
  constructor(link: Link, what: string, question: Question, options: OperationOptions = {}) {
    const { signal, window = OUTPUT_WINDOW_BYTES, isInternal = false, ofSession = false, id } = options
    if (signal?.aborted === true) throw abortedOperation(what)
    this.#what = what
    this.#signal = signal
    this.over = this.#done.promise.catch(() => undefined)
    this.activity = link.open(this, { window, isInternal, ofSession, ...(id === undefined ? {} : { id }) })
    signal?.addEventListener('abort', this.#onAbort, { once: true })
    this.activity.send(question)
  }

  /** Its last frame. @throws SandglassError for a failure that the sandbox reports. */
  async awaitDone(): Promise<ActivityDoneFrame> {
    const done = await this.#done.promise
    if (done.error === null) return done
    throw this.#signal?.aborted === true ? abortedOperation(this.#what) : failureOf(this.#what, done.error)
  }

  /** The answers, until the end. Each is credited when the next one is requested. Leaving the loop cancels the operation. */
  async *answers(): AsyncGenerator<Answer, void, void> {
    try {
      for (;;) {
        const answer = this.#answers.shift()
        if (answer !== undefined) {
          yield answer
          this.activity.credit(answer.kind === 'bytes' ? 'file' : 'frames', answer.size)
        } else if (this.#isOver) {
          await this.awaitDone()
          return
        } else {
          this.#news = Promise.withResolvers<void>()
          await this.#news.promise
        }
      }
    } finally {
      this.#answers = []
      this.activity.cancel()
    }
  }

  onOutput(stream: ActivityStream, bytes: Buffer): void {
    if (stream === 'file') this.#put({ kind: 'bytes', bytes, size: bytes.length })
  }

  onFrame(frame: { readonly type: string; readonly entries?: readonly EntryOnWire[] }, size: number): void {
    if (frame.type === 'entries') this.#put({ kind: 'entries', entries: frame.entries ?? [], size })
  }

  onEnd(end: ActivityEnd): void {
    this.#isOver = true
    this.#signal?.removeEventListener('abort', this.#onAbort)
    if ('lost' in end) this.#done.reject(end.lost)
    else this.#done.resolve(end.done)
    this.#news.resolve()
  }

  #put(answer: Answer): void {
    this.#answers.push(answer)
    this.#news.resolve()
  }
}

function abortedOperation(what: string): SandglassError {
  return new SandglassError('aborted', `${what}: it was aborted by its signal`)
}

/** Options of an operation. */
export interface OperationOptions {
  readonly signal?: AbortSignal | undefined
  /** Bytes that may be buffered for the caller. */
  readonly window?: number
  /** True if it does not count as use of the workspace. Default false. */
  readonly isInternal?: boolean | undefined
  /** True for an operation on a session, not on files. Default false. */
  readonly ofSession?: boolean | undefined
  /** The id of its activity. Default: a new one. */
  readonly id?: string | undefined
}
