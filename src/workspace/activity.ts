import type { SandglassError } from '../errors/index.ts'
import {
  type ActivityDoneFrame,
  type ActivityStream,
  encodeActivityFrame,
  encodePayload,
  type HarnessActivityFrame,
  type HostActivityFrame,
  INPUT_WINDOW_BYTES,
  MAX_PAYLOAD_BYTES,
} from '../protocol/index.ts'
import type { DataSource, Outbound } from './outbound.ts'

/** Bytes that an activity may send before it waits for credit, by default. */
export const OUTPUT_WINDOW_BYTES: number = 256 * 1024

/** The end of an activity: its last frame, or the error of a channel that ended before it. */
export type ActivityEnd = { readonly done: ActivityDoneFrame } | { readonly lost: SandglassError }

/** Handles the frames that the sandbox sends to an activity. Called in the order of arrival, and never after `onEnd`. */
export interface ActivityHandler {
  /** A line of a run, without its `\n`. It is valid until the call returns. */
  onLine?(line: Buffer, isLast: boolean): void
  /** Bytes of a stream. They count towards the window until they are credited. */
  onOutput?(stream: ActivityStream, bytes: Buffer): void
  /** Any other frame but `credit` and `activity_done`; its size counts like that of a line. */
  onFrame?(frame: Exclude<HarnessActivityFrame, { type: 'credit' | 'output' | 'activity_done' }>, bytes: number): void
  onEnd(end: ActivityEnd): void
}

/** A frame without its id, which the activity adds. */
type Unnamed<Frame> = Frame extends { execution_id: string } ? Omit<Frame, 'execution_id'> : never
type CreditedStream = Extract<HostActivityFrame, { type: 'credit' }>['stream']

/** The part of a link that an activity uses. */
export interface ActivityOwner {
  readonly outbound: Outbound
  /** Called when the activity is used. */
  touch(): void
  /** Requests its end; the sandbox is lost if it does not confirm it. */
  cancel(activity: Activity): void
}

/** The host's side of one activity in a sandbox. It enforces the windows in both directions. */
export class Activity implements DataSource {
  readonly id: string
  readonly handler: ActivityHandler
  readonly #owner: ActivityOwner
  readonly #window: number
  /** Bytes that the sandbox may still send, by stream. */
  readonly #room = new Map<string, number>()
  /** Credit that was not sent yet, by stream. It is collected, so that not every payload needs a credit frame of its own. */
  readonly #unsent = new Map<CreditedStream, number>()
  #input: { readonly bytes: Uint8Array; readonly sent: (isSent: boolean) => void }[] = []
  #inputRoom = INPUT_WINDOW_BYTES
  #endsInput = false
  #isOver = false

  constructor(id: string, handler: ActivityHandler, owner: ActivityOwner, window: number) {
    this.id = id
    this.handler = handler
    this.#owner = owner
    this.#window = window
  }

  get isOver(): boolean {
    return this.#isOver
  }

  /** Sends a control frame. A failure is ignored: the reader notices a peer that is gone. */
  send(frame: Unnamed<HostActivityFrame>): void {
    if (this.#isOver) return
    this.#owner.touch()
    const { type, ...fields } = frame
    const named = { type, execution_id: this.id, ...fields } as HostActivityFrame
    this.#owner.outbound.send(encodeActivityFrame(named)).catch(() => undefined)
  }

  /**
   * Sends input as fast as the sandbox reads it. Resolves when the bytes may be reused: to false if the activity ended before
   * they were sent.
   */
  write(bytes: Uint8Array): Promise<boolean> {
    if (this.#isOver || this.#endsInput) return Promise.resolve(false)
    if (bytes.length === 0) return Promise.resolve(true)
    this.#owner.touch()
    const { promise, resolve: sent } = Promise.withResolvers<boolean>()
    this.#input.push({ bytes, sent })
    this.#owner.outbound.ready(this)
    return promise
  }

  /** Ends the input after everything that was written. */
  endInput(): void {
    if (this.#isOver || this.#endsInput) return
    this.#endsInput = true
    this.#owner.outbound.ready(this)
  }

  nextPiece(into: Buffer): Uint8Array | undefined {
    if (this.#isOver) return undefined
    const first = this.#input[0]
    if (first === undefined) {
      if (!this.#endsInput || this.#inputRoom === Number.NEGATIVE_INFINITY) return undefined
      this.#inputRoom = Number.NEGATIVE_INFINITY
      return encodeActivityFrame({ type: 'input_end', execution_id: this.id })
    }
    const size = Math.min(MAX_PAYLOAD_BYTES, this.#inputRoom, first.bytes.length)
    if (size <= 0) return undefined
    this.#inputRoom -= size
    if (size === first.bytes.length) {
      this.#input.shift()
      first.sent(true)
    } else {
      this.#input[0] = { bytes: first.bytes.subarray(size), sent: first.sent }
    }
    return encodePayload({ type: 'input', execution_id: this.id }, first.bytes.subarray(0, size), into)
  }

  /** Adds credit from the sandbox for more input. */
  grantInput(bytes: number): void {
    // A sandbox that grants too much gets at most one window at a time.
    this.#inputRoom = Math.min(this.#inputRoom + bytes, INPUT_WINDOW_BYTES)
    if (this.#input.length > 0) this.#owner.outbound.ready(this)
  }

  /**
   * Counts received bytes of a stream. Returns false if the sandbox sends more than its window.
   * @param slack bytes that it may send beyond the window, because a line is not cut.
   */
  receive(stream: string, bytes: number, slack: number = 0): boolean {
    const room = (this.#room.get(stream) ?? this.#window) - bytes
    this.#room.set(stream, room)
    return room >= -slack
  }

  /** Credits bytes of a stream that the host has read. */
  credit(stream: CreditedStream, bytes: number): void {
    if (this.#isOver || bytes === 0) return
    const unsent = (this.#unsent.get(stream) ?? 0) + bytes
    // A quarter of the window at most is held back, so that the sandbox never waits for it.
    const isDue = unsent >= this.#window / 4
    this.#unsent.set(stream, isDue ? 0 : unsent)
    if (!isDue) return
    this.#room.set(stream, (this.#room.get(stream) ?? this.#window) + unsent)
    this.send({ type: 'credit', stream, bytes: unsent })
  }

  /** Asks the sandbox to end it at once. Its last frame follows. */
  cancel(): void {
    if (this.#isOver) return
    this.dropInput()
    this.#owner.cancel(this)
  }

  /** Reports its end. Called by its owner, once. */
  end(end: ActivityEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.dropInput()
    this.handler.onEnd(end)
  }

  /** Drops input that was not sent: the sandbox reads no more. */
  dropInput(): void {
    this.#endsInput = true
    this.#inputRoom = Number.NEGATIVE_INFINITY
    const dropped = this.#input
    this.#input = []
    for (const { sent } of dropped) sent(false)
  }
}
