import { BrokerRun, type KillCause } from './broker-run.ts'
import type { GuestProcess } from './guest-interface.ts'
import type { GuestMessage } from './guest/wire.ts'
import { listen } from './listen.ts'
import type { Outbox } from './outbox.ts'
import { bodyOf, COLLECTED_MS, orderOf, type Request, tooLarge } from './requests.ts'
import type { Spare } from './spare.ts'
import { cut } from './text.ts'

/** Of answers that a script does not read. */
const MAX_UNREAD_BYTES = 64 * 1024 * 1024
const MAX_WARNING = 500
const NO_BYTES: Uint8Array = new Uint8Array()

/** One run on its way through an instance: its clocks, what goes into the instance, and what it says until it is done. */
export class RunCourse {
  readonly run: BrokerRun
  readonly spare: Spare
  readonly guest: GuestProcess
  readonly #outbox: Outbox
  #killing: NodeJS.Timeout | undefined
  #waking: NodeJS.Timeout | undefined
  /** For a script that asked to be woken. */
  #wake: NodeJS.Timeout | undefined

  constructor(request: Request, spare: Spare, outbox: Outbox) {
    this.spare = spare
    this.guest = spare.guest
    this.#outbox = outbox
    this.run = new BrokerRun(request, outbox, (afterMs) => this.#wakeAfter(afterMs))
  }

  /**
   * Has the script run until nothing more comes out of its process, which is killed then.
   * @returns why the instance refused it; then nothing ran, and the instance can serve another.
   */
  async follow(): Promise<string | undefined> {
    const { guest, run } = this
    this.#killing = setTimeout(() => this.kill('timeout'), run.killAt - performance.now())
    // A script that waits for an answer sees the deadline only when it is woken.
    this.#waking = setTimeout(() => this.#wakeNow(), run.deadline - performance.now() + 5)
    const drained = listen(guest, run, () => {
      if (run.over) this.kill('output-limit')
    })
    guest.send(orderOf(run))
    guest.sendToScript(Buffer.from(JSON.stringify(bodyOf(run))))
    for (;;) {
      const next = await guest.control.next()
      if (next.done === true) break
      const message = next.value
      if (message.type === 'refused') {
        for (const stream of [guest.frames, guest.stdout, guest.stderr]) stream.removeAllListeners('data')
        const shown = cut(JSON.stringify(message.path), 400)
        return `the file ${shown} could not be put into the workspace: ${cut(message.reason, 200)}`
      }
      await this.#takeControl(message, drained)
      if (message.type === 'collected') break
    }
    guest.kill()
    await drained
    guest.destroy() // what it still says to nobody must not hold its end up
    return undefined
  }

  /** Hands the script the answer to a call. */
  answer(line: Uint8Array): void {
    const { guest, run } = this
    if (run.finished || run.hasEnded) return
    const fits = guest.unsentBytes + line.length <= MAX_UNREAD_BYTES
    guest.sendToScript(fits ? line : tooLarge(line))
  }

  /** Ends it for the host, unless it has come to its end. */
  cancel(): void {
    this.kill('cancelled')
  }

  kill(cause: KillCause): void {
    if (this.run.hasEnded) return
    this.run.killedFor ??= cause
    this.guest.kill()
    this.press(false) // what is left in the pipes is not much
  }

  /** A host that does not read stops the reading of what the script says, and so the script; no deadline waits for it. */
  press(paused: boolean): void {
    for (const stream of [this.guest.frames, this.guest.stdout, this.guest.stderr]) {
      if (paused) stream.pause()
      else stream.resume()
    }
  }

  /** Tells what is left to tell once its process is gone or killed; the last frame, but for what only the sandbox knows. */
  conclude(code: number | null, signal: string | null): object {
    this.run.conclude(code, this.guest.lastWords())
    this.run.lastWords()
    return this.run.done(signal)
  }

  /** Stops its clocks. */
  stop(): void {
    clearTimeout(this.#killing)
    clearTimeout(this.#waking)
    clearTimeout(this.#wake)
  }

  async #takeControl(message: GuestMessage, drained: Promise<unknown>): Promise<void> {
    const { guest, run } = this
    if (message.type === 'ended' && !run.hasEnded) {
      run.hasEnded = true
      run.exitCode = typeof message.exitCode === 'number' ? message.exitCode : null
      run.fault = typeof message.fault === 'string' ? message.fault : null
      setTimeout(() => guest.kill(), COLLECTED_MS).unref()
      await drained // files come after everything else
    } else if (message.type === 'file' && run.hasEnded) {
      const { path, size, offset, contentBase64 } = message
      run.emit({ type: 'file', path, size, offset, content_base64: contentBase64 }, false)
      await this.#outbox.room()
    } else if (message.type === 'collected') {
      run.limitsHit = message.limitsHit.map(String)
      for (const text of message.skipped) {
        run.warnings.push({ code: 'collect_skipped', message: cut(String(text), MAX_WARNING) })
      }
    } else if (message.type === 'out-of-memory') {
      run.killedFor ??= 'memory'
    }
  }

  #wakeAfter(ms: number): void {
    clearTimeout(this.#wake)
    if (ms < 1) this.#wakeNow()
    else this.#wake = setTimeout(() => this.#wakeNow(), Math.min(ms, 3_600_000))
  }

  #wakeNow(): void {
    if (this.run.hasTools && !this.run.hasEnded) this.guest.sendToScript(NO_BYTES)
  }
}
