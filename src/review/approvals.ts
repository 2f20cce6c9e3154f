import { randomUUID } from 'node:crypto'
import { messageOf, SandglassError } from '../errors/index.ts'
import { formatValue, MAX_TIMER_MS, refuseUnknown } from '../support/index.ts'
import type { Approver, CallDecision, CallToApprove, ToolEffect } from '../tools/index.ts'
import { MAX_DECIDER } from './decision.ts'

/** A call of a tool that waits until a person approves it. */
export interface PendingCall {
  /** Unguessable, and unique to this call. */
  readonly id: string
  /** The run that made the call. */
  readonly executionId: string
  /** The task of `solve` that the run belongs to, and its id in the journal; else null. */
  readonly task: string | null
  readonly runId: string | null
  /** The name of the Python function that the script called. */
  readonly tool: string
  readonly effect: ToolEffect
  /** The arguments with which the tool will execute; only secrets of the run are replaced. Frozen. */
  readonly args: unknown
  /** The line of the script that made the call; null if it is not known. The script can make it up. */
  readonly line: number | null
  /** ISO 8601, UTC. */
  readonly since: string
  /** Aborted when the call no longer waits. */
  readonly signal: AbortSignal
}

/** Options of an approval. */
export interface ApproveOptions {
  /** Execute the tool with these arguments in place of those of the script; they must match its input schema. */
  readonly args?: Readonly<Record<string, unknown>> | undefined
  /** The name of the person who decided, for the record. At most 200 characters. */
  readonly by?: string | null | undefined
}

/** The options of `createSandglass` for calls that need approval. */
export interface ApprovalOptions {
  /** True: calls of tools whose effect is not `read` need approval, unless their tool has an `approve` of its own. Default false. */
  readonly approveWrites?: boolean | undefined
  /** The time after which a call that nobody decides about is denied, in milliseconds. Default 600,000. */
  readonly approvalTimeoutMs?: number | undefined
  /**
   * Called with all waiting calls when new ones begin to wait; once for calls that arrive together. If it throws or rejects, the calls that
   * are new to it are denied, and a warning of the process (`SANDGLASS_ON_PENDING`) holds the message.
   */
  readonly onPending?: ((calls: readonly PendingCall[]) => void | Promise<void>) | undefined
}

/** A run whose calls may need approval. */
export interface ApprovedRun {
  readonly task?: string
  readonly runId?: string
  /** Cancels the run if the Sandglass closes while one of its calls waits. */
  cancel?(): void
  /** Called when the first of its calls begins to wait. The returned function is called when none waits any more. */
  park?(): () => void
}

interface Waiting {
  readonly call: PendingCall
  readonly check: CallToApprove['check']
  readonly settle: (decision: CallDecision) => void
  readonly cancel: () => void
  /** Aborts the signal of the call. */
  readonly end: () => void
  /** True if somebody has answered, with arguments that are being checked or were refused. */
  isAttended: boolean
}

const DEFAULT_TIMEOUT_MS = 600_000
/** Calls under `asyncio.gather` arrive within this time of each other. */
const TOGETHER_MS = 10
/** Decisions that are remembered, so that a late answer is told how the call was decided. */
const MAX_REMEMBERED = 1000
/** The maximum length of the reason of a denial, in characters; the message of a ToolError has at most 4,096. */
export const MAX_REASON = 2000
const NO_REASON = 'a person did not approve it'

/** @throws TypeError for an invalid option. */
export function checkApprovalOptions({ approveWrites, approvalTimeoutMs: ms, onPending }: ApprovalOptions): void {
  if (approveWrites !== undefined && typeof approveWrites !== 'boolean')
    throw new TypeError(`approveWrites: ${formatValue(approveWrites)} is neither true nor false`)
  if (ms !== undefined && !(typeof ms === 'number' && ms > 0 && ms <= MAX_TIMER_MS))
    throw new TypeError(
      `approvalTimeoutMs: ${formatValue(ms)} is not a number of milliseconds above 0 and up to ${MAX_TIMER_MS}`,
    )
  if (onPending !== undefined && typeof onPending !== 'function')
    throw new TypeError(`onPending: ${formatValue(onPending)} is not a function that takes a list of calls`)
}

/** The calls that wait for approval, and the decisions about them. */
export class Approvals {
  readonly #options: ApprovalOptions
  readonly #waiting = new Map<string, Waiting>()
  /** The outcome of decided calls, by their ids. */
  readonly #decided = new Map<string, string>()
  /** Calls that `onPending` has not been told about. */
  readonly #news = new Set<string>()
  #isTelling = false
  #isClosed = false

  constructor(options: ApprovalOptions) {
    this.#options = options
  }

  /** The calls that wait, the oldest first. */
  pending(): readonly PendingCall[] {
    return [...this.#waiting.values()].map(({ call }) => call)
  }

  /**
   * Lets a call execute.
   * @throws SandglassError `approval_unknown`, `approval_decided`, `approval_invalid`; TypeError for an invalid option.
   */
  async approve(id: string, options: ApproveOptions = {}): Promise<void> {
    refuseUnknown('approve', options, ['args', 'by'])
    const { args, by = null } = options
    checkBy(by)
    if (args !== undefined && !isRecord(args))
      throw new TypeError(`args: ${formatValue(args)} is not an object with the arguments of the tool`)
    const waiting = this.#find(id)
    if (args === undefined) return this.#settle(id, { approved: true, args: null, by })
    // A copy: what is checked is what executes.
    const own = copyOf(args)
    waiting.isAttended = true
    try {
      await waiting.check(own)
    } catch (error) {
      this.#find(id)
      throw new SandglassError('approval_invalid', `${messageOf(error)}; the call still waits`)
    }
    // Another answer may have settled the call meanwhile.
    this.#find(id)
    this.#settle(id, { approved: true, args: own, by })
  }

  /**
   * Refuses a call: the script gets a ToolError with the reason.
   * @throws SandglassError `approval_unknown`, `approval_decided`; TypeError for a text that is too long.
   */
  async deny(id: string, reason: string = NO_REASON, options: Pick<ApproveOptions, 'by'> = {}): Promise<void> {
    refuseUnknown('deny', options, ['by'])
    const { by = null } = options
    checkBy(by)
    if (typeof reason !== 'string' || reason.length > MAX_REASON)
      throw new TypeError(`reason: ${formatValue(reason)} is not a text of at most ${MAX_REASON} characters`)
    this.#find(id)
    this.#settle(id, { approved: false, reason: reason.trim() === '' ? NO_REASON : reason, by })
    await Promise.resolve()
  }

  /** Cancels the runs with waiting calls, and denies all later calls, because nobody can answer them. */
  cancelWaiting(): void {
    this.#isClosed = true
    const waiting = [...this.#waiting.values()]
    for (const { cancel } of waiting) cancel()
  }

  /** Creates the approver of one run. After a call that nobody answers in time, it denies further calls without asking. */
  approverOf(run: ApprovedRun = {}): Approver {
    const { approveWrites = false, approvalTimeoutMs: ms = DEFAULT_TIMEOUT_MS } = this.#options
    const { task = null, runId = null } = run
    let isUnattended = false
    let count = 0
    let unpark: (() => void) | undefined
    return {
      approvesWrites: approveWrites,
      ask: async (asked) => {
        const { executionId, tool, effect, args, line, signal } = asked
        signal.throwIfAborted()
        if (this.#isClosed)
          return { approved: false, reason: 'this Sandglass is closing, and nobody is asked any more', by: null }
        const noAnswer = `nobody answered within ${ms} ms (approvalTimeoutMs)`
        if (isUnattended) return { approved: false, reason: `${noAnswer} to an earlier call of this run`, by: null }
        const id = randomUUID()
        const shown = freezeAll(structuredClone(args))
        const since = new Date().toISOString()
        const ended = new AbortController()
        const about = { id, executionId, task, runId, tool, effect, args: shown, line, since }
        const call = Object.freeze({ ...about, signal: ended.signal })
        const { promise, resolve: settle, reject } = Promise.withResolvers<CallDecision>()
        const timer = setTimeout(() => {
          isUnattended = this.#waiting.get(id)?.isAttended === false
          this.#settle(id, { approved: false, reason: noAnswer, by: null }, 'denied, because nobody answered in time')
        }, ms)
        const onRunEnd = (): void => {
          this.#remove(id, 'the run is over')
          reject(signal.reason as Error)
        }
        signal.addEventListener('abort', onRunEnd, { once: true })
        this.#waiting.set(id, {
          call,
          check: (other) => asked.check(other),
          settle,
          cancel: () => run.cancel?.(),
          end: () => ended.abort(),
          isAttended: false,
        })
        count += 1
        if (count === 1) unpark = run.park?.()
        asked.onAsked(id)
        this.#tell(id)
        try {
          return await promise
        } finally {
          clearTimeout(timer)
          signal.removeEventListener('abort', onRunEnd)
          count -= 1
          if (count === 0) unpark?.()
        }
      },
    }
  }

  /** @throws SandglassError for a call that does not wait. */
  #find(id: string): Waiting {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) return waiting
    const decided = this.#decided.get(id)
    if (decided !== undefined)
      throw new SandglassError('approval_decided', `call ${formatValue(id)} does not wait any more: ${decided}`)
    throw new SandglassError('approval_unknown', `no call waits for approval under the id ${formatValue(id)}`)
  }

  #settle(id: string, decision: CallDecision, how = `it was ${decision.approved ? 'approved' : 'denied'}`): void {
    const settle = this.#waiting.get(id)?.settle
    this.#remove(id, decision.by === null ? how : `${how} by ${decision.by}`)
    settle?.(decision)
  }

  #remove(id: string, how: string): void {
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return
    this.#waiting.delete(id)
    waiting.end()
    this.#news.delete(id)
    this.#decided.set(id, how)
    const [oldest] = this.#decided.keys()
    if (this.#decided.size > MAX_REMEMBERED && oldest !== undefined) this.#decided.delete(oldest)
  }

  #tell(id: string): void {
    const { onPending } = this.#options
    if (onPending === undefined) return
    this.#news.add(id)
    if (this.#isTelling) return
    this.#isTelling = true
    setTimeout(() => void this.#tellAll(onPending), TOGETHER_MS)
  }

  async #tellAll(onPending: NonNullable<ApprovalOptions['onPending']>): Promise<void> {
    this.#isTelling = false
    const news = [...this.#news]
    this.#news.clear()
    if (news.length === 0) return
    try {
      await onPending(this.pending())
    } catch (error) {
      // The script gets the reason, and the message may contain addresses and keys of the host.
      process.emitWarning(`onPending failed: ${messageOf(error)}`, { code: 'SANDGLASS_ON_PENDING' })
      const decision = { approved: false, reason: 'nobody could be asked', by: null } as const
      for (const id of news) this.#settle(id, decision, 'denied, because onPending failed')
    }
  }
}

function checkBy(by: unknown): void {
  if (by === null || (typeof by === 'string' && by.length <= MAX_DECIDER)) return
  throw new TypeError(`by: ${formatValue(by)} is not a text of at most ${MAX_DECIDER} characters`)
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @throws TypeError for arguments that JSON cannot represent. */
function copyOf(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  let copy: unknown
  try {
    copy = JSON.parse(JSON.stringify(args))
  } catch (error) {
    throw new TypeError(`args: cannot be written as JSON: ${messageOf(error)}`, { cause: error })
  }
  if (!isRecord(copy))
    throw new TypeError('args: written as JSON, they are not an object with the arguments of the tool')
  return freezeAll(copy)
}

/** Freezes a JSON value and everything in it. */
function freezeAll<T>(value: T): T {
  const open: unknown[] = [value]
  while (open.length > 0) {
    const one = open.pop()
    if (typeof one !== 'object' || one === null) continue
    for (const part of Object.values(Object.freeze(one))) open.push(part)
  }
  return value
}
