import type { ToolFailure } from '../protocol/index.ts'
import { formatValue } from '../support/index.ts'
import type { PreparedTool } from './prepared-tool.ts'

/** The limits on the tool calls of one run. */
export interface ToolLimits {
  /** Maximum calls in one run, over all tools, refused ones included. Default 10,000. */
  readonly maxCalls?: number | undefined
  /** Maximum concurrent calls; further calls wait in order. Default 32. */
  readonly concurrency?: number | undefined
}

const DEFAULT_CALLS = 10_000
const DEFAULT_CONCURRENCY = 32
/** Number of waiting and running calls from which on the host no longer reads frames of the script. */
const MAX_WAITING = 1000
/** The same limit for the approximate memory of their arguments, in bytes. */
const MAX_WAITING_BYTES = 64 * 1024 * 1024

/** @throws TypeError for a limit that is not a positive integer. */
export function checkToolLimits({ maxCalls = DEFAULT_CALLS, concurrency = DEFAULT_CONCURRENCY }: ToolLimits): void {
  checkPositive('toolLimits.maxCalls', maxCalls)
  checkPositive('toolLimits.concurrency', concurrency)
}

/** Counts the calls of one run and schedules them. */
export class CallLimits {
  readonly #maxCalls: number
  readonly #total: Semaphore

  readonly #calls = new Map<PreparedTool, number>()
  readonly #turns = new Map<PreparedTool, Semaphore>()
  #count = 0
  #waiting = 0
  #waitingBytes = 0
  #closed = false
  #room: PromiseWithResolvers<void> | undefined

  /** @throws TypeError for a limit that is not a positive integer. */
  constructor({ maxCalls = DEFAULT_CALLS, concurrency = DEFAULT_CONCURRENCY }: ToolLimits) {
    this.#maxCalls = checkPositive('toolLimits.maxCalls', maxCalls)
    this.#total = new Semaphore(checkPositive('toolLimits.concurrency', concurrency))
  }

  /**
   * Counts a call, whether it is refused or not; returns the reason why a limit refuses it, or undefined.
   * @param tool undefined if there is none of that name.
   */
  count(tool: PreparedTool | undefined): ToolFailure | undefined {
    if (this.#count >= this.#maxCalls) return limitFailure(`this run may call tools ${this.#maxCalls} times`)
    this.#count += 1
    if (tool === undefined) return undefined
    const calls = this.#calls.get(tool) ?? 0
    if (tool.maxCalls !== undefined && calls >= tool.maxCalls) {
      return limitFailure(`${tool.name}: this run may call it ${tool.maxCalls} times`)
    }
    this.#calls.set(tool, calls + 1)
    return undefined
  }

  /** Registers a call; call the returned function when it has ended. */
  enter(bytes: number): () => void {
    this.#waiting += 1
    this.#waitingBytes += bytes
    return () => {
      this.#waiting -= 1
      this.#waitingBytes -= bytes
      if (this.#hasRoom()) this.#room?.resolve()
    }
  }

  /** Resolves when there is room for more calls. */
  async awaitRoom(): Promise<void> {
    if (this.#hasRoom()) return
    this.#room = Promise.withResolvers()
    await this.#room.promise
  }

  /** Waits until a call may run; call the returned function when it has ended. */
  async awaitTurn(tool: PreparedTool): Promise<() => void> {
    const leaveOwn = await this.#turnsOf(tool)?.enter()
    const leave = await this.#total.enter()
    return () => {
      leave()
      leaveOwn?.()
    }
  }

  /** Resolves everything that waits, because the run is over. */
  close(): void {
    this.#closed = true
    this.#room?.resolve()
    for (const turns of [this.#total, ...this.#turns.values()]) turns.close()
  }

  #turnsOf(tool: PreparedTool): Semaphore | undefined {
    if (tool.concurrency === undefined) return undefined
    const known = this.#turns.get(tool)
    if (known !== undefined) return known
    const made = new Semaphore(tool.concurrency)
    this.#turns.set(tool, made)
    return made
  }

  #hasRoom(): boolean {
    return this.#closed || (this.#waiting < MAX_WAITING && this.#waitingBytes < MAX_WAITING_BYTES)
  }
}

/** A semaphore that serves in order of arrival. */
class Semaphore {
  #free: number
  readonly #queue: (() => void)[] = []

  constructor(size: number) {
    this.#free = size
  }

  async enter(): Promise<() => void> {
    if (this.#free > 0) this.#free -= 1
    else {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#queue.push(resolve)
      await promise
    }
    return () => {
      const next = this.#queue.shift()
      if (next === undefined) this.#free += 1
      else next()
    }
  }

  close(): void {
    this.#free = Number.POSITIVE_INFINITY
    for (const wake of this.#queue.splice(0)) wake()
  }
}

function limitFailure(message: string): ToolFailure {
  return { code: 'call_limit', message }
}

function checkPositive(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new TypeError(`${name}: ${formatValue(value)} is not a positive integer`)
}
