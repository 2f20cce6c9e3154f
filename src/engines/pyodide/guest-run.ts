import { CAPS, truncateLikeHarness } from '../../protocol/index.ts'
import { Countdown } from '../../support/index.ts'
import { RunState, type KillCause } from './run-state.ts'
import type { GuestProcess } from './guest-interface.ts'
import type { GuestMessage } from './guest/wire.ts'
import { countsOf, GuestOutput } from './guest-output.ts'
import type { RunOutbox } from './outbox.ts'
import { ANSWER_HEAD, bodyOf, COLLECT_TIMEOUT_MS, runMessageOf, type Request, makeTooLargeAnswer } from './requests.ts'
import type { Spare } from './spare.ts'

const NO_BYTES: Uint8Array = new Uint8Array()
/** Time to receive the files of a workspace, in addition to that for collected files. */
const KEEP_MS = 30_000
/** Time to receive them after a cancellation. */
const CANCELLED_KEEP_MS = 500

/** A cell in the instance of its session: its number there, and the output of the instance. */
export interface GuestCell {
  readonly turn: number
  readonly output: GuestOutput
}

/** One run in an instance: its timers, its input, and the messages of the instance until it is done. */
export class GuestRun {
  readonly state: RunState
  readonly spare: Spare
  readonly guest: GuestProcess
  /** The first bytes of the answers to its calls, as the library writes them. */
  readonly answerHead: Buffer
  readonly #outbox: RunOutbox
  readonly #onFiles: ((message: GuestMessage) => void) | undefined
  readonly #cell: GuestCell | undefined
  #killing: Countdown | undefined
  #waking: Countdown | undefined
  /** Set for a script that asked to be woken. */
  #wake: NodeJS.Timeout | undefined
  /** Ends the collection in time. Until then it keeps the run, and the files that it has collected, in memory. */
  #collecting: NodeJS.Timeout | undefined
  #wantsInterrupt = false
  #isKilled = false
  #lives = false

  /**
   * @param onFiles receives the files of the workspace, which follow the script; absent: they are not kept.
   * @param cell absent: a script, after which the instance ends.
   */
  constructor(
    request: Request,
    spare: Spare,
    outbox: RunOutbox,
    onFiles?: (message: GuestMessage) => void,
    cell?: GuestCell,
  ) {
    this.#cell = cell
    this.spare = spare
    this.guest = spare.guest
    this.#outbox = outbox
    this.#onFiles = onFiles
    this.answerHead = Buffer.from(`${ANSWER_HEAD.toString()}"execution_id":${JSON.stringify(request.execution_id)},`)
    this.state = new RunState(request, outbox, (afterMs) => this.#wakeAfter(afterMs))
  }

  get id(): string {
    return this.state.id
  }

  /**
   * Runs the script, and kills its process after its last output.
   * @returns the reason why the instance refused the run; in this case nothing ran, and the instance can serve another run.
   */
  async follow(): Promise<string | undefined> {
    const { guest, state } = this
    this.#killing = new Countdown(
      () => state.killAt - performance.now(),
      () => this.kill('timeout'),
    )
    // A script that waits for an answer sees the deadline only when it is woken.
    this.#waking = new Countdown(
      () => state.deadline + 5 - performance.now(),
      () => this.#wakeNow(),
    )
    const output = this.#cell?.output ?? new GuestOutput(guest)
    output.begin(state, () => {
      if (state.over) this.kill('output-limit')
      this.#sendInterrupt()
    })
    const message = { ...runMessageOf(state), keep: this.#onFiles !== undefined }
    guest.send(this.#cell === undefined ? message : { ...message, type: 'cell', turn: this.#cell.turn })
    guest.sendToScript(Buffer.from(JSON.stringify(bodyOf(state))))
    for (;;) {
      const next = await guest.control.next()
      if (next.done === true) break
      const message = next.value
      if (message.type === 'refused') {
        output.leave()
        // A guest that a script took over can send anything.
        if (typeof message.reason !== 'string') throw new TypeError('a refusal has no reason')
        const path = truncateLikeHarness(JSON.stringify(message.path), 400)
        return `the file ${path} could not be put into the workspace: ${truncateLikeHarness(message.reason, 200)}`
      }
      await this.#takeControl(message, output)
      if (message.type === 'collected') break
    }
    if (this.lives) return undefined
    guest.kill()
    await output.closed
    output.end()
    guest.destroy() // output that nobody reads must not delay its end
    return undefined
  }

  /** True if the instance can run another cell. */
  get lives(): boolean {
    return this.#lives && this.state.finished && !this.#isKilled && !this.state.over
  }

  /** Interrupts a cell. */
  interrupt(): void {
    if (this.state.hasEnded) return
    this.#wantsInterrupt = true
    this.#sendInterrupt()
  }

  /** Sends a requested interrupt once the cell itself has begun: before, it would be ignored. */
  #sendInterrupt(): void {
    if (this.#cell === undefined || !this.#wantsInterrupt || !this.state.isSetUp) return
    this.#wantsInterrupt = false
    this.state.isInterrupted = true
    // A cell that waits for an answer is woken when it can see the interrupt.
    this.guest.interrupt(this.#cell.turn, () => this.#wakeNow())
  }

  /** Sends the script the answer to a call. */
  answer(line: Uint8Array): void {
    const { guest, state } = this
    if (state.finished || state.hasEnded) return
    const fits = guest.unsentBytes + line.length <= CAPS.unreadAnswerBytes
    guest.sendToScript(fits ? line : makeTooLargeAnswer(line))
  }

  /** Ends the run at the request of the host, unless its script has ended. */
  cancel(): void {
    if (this.state.hasEnded && this.#onFiles !== undefined) this.#collectFor(CANCELLED_KEEP_MS)
    this.kill('cancelled')
  }

  kill(cause: KillCause): void {
    if (this.state.hasEnded) return
    this.state.killedFor ??= cause
    this.#isKilled = true
    this.guest.kill()
    this.setPaused(false) // read the rest of the pipes, which is small
  }

  /** Stops or resumes reading from the script: a host that does not read stops the script. Deadlines continue. */
  setPaused(paused: boolean): void {
    for (const stream of [this.guest.frames, this.guest.stdout, this.guest.stderr]) {
      if (paused) stream.pause()
      else stream.resume()
    }
  }

  /** Sends the last error and returns `script_done`, without the fields that only the sandbox knows. Called after the kill. */
  conclude(code: number | null, signal: string | null): object {
    this.state.conclude(code, this.guest.lastOutput())
    this.state.emitFinalError()
    return this.state.buildDoneFrame(signal)
  }

  /** Stops its timers. */
  stop(): void {
    this.#killing?.stop()
    this.#waking?.stop()
    clearTimeout(this.#wake)
    clearTimeout(this.#collecting)
  }

  async #takeControl(message: GuestMessage, output: GuestOutput): Promise<void> {
    const { state } = this
    if (message.type === 'ended' && !state.hasEnded) {
      state.hasEnded = true
      state.exitCode = typeof message.exitCode === 'number' ? message.exitCode : null
      state.fault = typeof message.fault === 'string' ? message.fault : null
      const keepMs = this.#onFiles === undefined ? 0 : KEEP_MS
      this.#collectFor(COLLECT_TIMEOUT_MS + keepMs)
      const written = this.#cell === undefined ? undefined : countsOf(message.written)
      this.#lives = message.lives === true && written !== undefined
      // Files follow all other output.
      if (written !== undefined) await output.reach(written)
      else {
        if (this.#cell !== undefined) this.#killLate()
        await output.closed
        output.end()
      }
    } else if (message.type === 'file' && state.hasEnded) {
      const { path, size, offset, contentBase64 } = message
      state.emit({ type: 'file', path, size, offset, content_base64: contentBase64 }, false)
      await this.#outbox.room()
    } else if (message.type === 'collected') {
      state.limitsHit = message.limitsHit.map(String)
      for (const text of message.skipped) {
        state.warnings.push({ code: 'collect_skipped', message: truncateLikeHarness(String(text), CAPS.warning) })
      }
    } else if (['entries', 'content', 'kept'].includes(message.type) && state.hasEnded) {
      this.#onFiles?.(message)
    } else if (message.type === 'out-of-memory') {
      state.killedFor ??= 'memory'
    } else if (message.type === 'past-deadline') {
      state.killedFor ??= 'timeout'
    }
  }

  /** Kills the instance if its files have not arrived within this time. */
  #collectFor(ms: number): void {
    clearTimeout(this.#collecting)
    this.#collecting = setTimeout(() => this.#killLate(), ms).unref()
  }

  /** Kills the instance after the end of the script. */
  #killLate(): void {
    this.#isKilled = true
    this.guest.kill()
  }

  #wakeAfter(ms: number): void {
    clearTimeout(this.#wake)
    if (ms < 1) this.#wakeNow()
    else this.#wake = setTimeout(() => this.#wakeNow(), Math.min(ms, 3_600_000))
  }

  /** Messages that wait for the script wake it, too: a script that only asks to be woken takes no memory here. */
  #wakeNow(): void {
    const { state, guest } = this
    if (state.hasTools && !state.hasEnded && guest.unsentBytes === 0) guest.sendToScript(NO_BYTES)
  }
}
