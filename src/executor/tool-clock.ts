import { MAX_TIMER_MS } from '../support/index.ts'
import type { RunTools } from './tool-port.ts'

/** A call that executes for this long is reported to the harness. Most calls are shorter, and a report takes as long as a call. */
const REPORT_AFTER_MS = 10
/** Shorter calls are reported together. */
const REPORT_STEP_MS = 100
/** The maximum time in which the calls of one run wait for approval, in seconds. */
const MAX_APPROVAL_SEC = 30 * 24 * 3600

/** The maximum time by which approvals move the deadline of a run, in seconds. */
export function maxApprovalSec(tools: RunTools | undefined): number {
  return tools?.mayWait === true ? MAX_APPROVAL_SEC : 0
}

type Phase = 'idle' | 'tools' | 'approvals'

/**
 * Counts the time in which at least one call waits for approval, and the time in which no call waits and at least one tool executes
 * on the host. It does not count towards the script's timeout: the deadline moves. Only the host's own functions start and stop this
 * clock, so no frame of a script can.
 */
export class ToolClock {
  readonly #most: { readonly toolsMs: number; readonly approvalsMs: number }
  readonly #tell: (movedMs: number, moving: boolean) => void
  #executing = 0
  #waiting = 0
  #phase: Phase = 'idle'
  #since = 0
  #toolsMs = 0
  #approvalsMs = 0
  #reportedMs = 0
  #isReportedMoving = false
  #stopped = false
  #timer: NodeJS.Timeout | undefined

  /** @param tell reports to the harness the time so far, and whether the clock still runs. */
  constructor(
    most: { readonly toolsMs: number; readonly approvalsMs: number },
    tell: (movedMs: number, moving: boolean) => void,
  ) {
    this.#most = most
    this.#tell = tell
  }

  /** The time so far, each part within its maximum. */
  get movedMs(): number {
    const since = this.#phase === 'idle' ? 0 : performance.now() - this.#since
    const tools = this.#toolsMs + (this.#phase === 'tools' ? since : 0)
    const approvals = this.#approvalsMs + (this.#phase === 'approvals' ? since : 0)
    return Math.min(tools, this.#most.toolsMs) + Math.min(approvals, this.#most.approvalsMs)
  }

  /** Starts the time of a call that executes. Call the returned function once, when the call has ended. */
  begin(): () => void {
    return this.#count((by) => (this.#executing += by))
  }

  /** Starts the time of a call that waits for approval. Call the returned function once, when there is a decision. */
  beginApproval(): () => void {
    return this.#count((by) => (this.#waiting += by))
  }

  /** Stops the clock at the end of the run. The harness gets no further reports. */
  stop(): void {
    this.#enter('idle')
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #count(add: (by: 1 | -1) => void): () => void {
    if (this.#stopped) return () => undefined
    add(1)
    this.#change()
    return () => {
      if (this.#stopped) return
      add(-1)
      this.#change()
    }
  }

  #change(): void {
    const phase = this.#waiting > 0 ? 'approvals' : this.#executing > 0 ? 'tools' : 'idle'
    if (phase === this.#phase) return
    this.#enter(phase)
    clearTimeout(this.#timer)
    if (this.#leftMs > 0) this.#timer = setTimeout(() => this.#report(), REPORT_AFTER_MS)
    else if (this.#isReportedMoving || this.movedMs - this.#reportedMs >= REPORT_STEP_MS) this.#report()
  }

  #enter(phase: Phase): void {
    const now = performance.now()
    if (this.#phase === 'tools') this.#toolsMs += now - this.#since
    if (this.#phase === 'approvals') this.#approvalsMs += now - this.#since
    this.#phase = phase
    this.#since = now
  }

  /** The remaining time by which this phase can move the deadline. */
  get #leftMs(): number {
    const now = performance.now() - this.#since
    if (this.#phase === 'tools') return this.#most.toolsMs - this.#toolsMs - now
    if (this.#phase === 'approvals') return this.#most.approvalsMs - this.#approvalsMs - now
    return 0
  }

  #report(): void {
    const left = this.#leftMs
    const moving = left > 0
    this.#isReportedMoving = moving
    this.#reportedMs = this.movedMs
    this.#tell(Math.round(this.#reportedMs * 1000) / 1000, moving)
    // The harness has one maximum for tools and approvals: with approvals, the host reports when tools have reached theirs.
    if (moving && this.#most.approvalsMs > 0)
      this.#timer = setTimeout(() => this.#report(), Math.min(Math.ceil(left), MAX_TIMER_MS))
  }
}
