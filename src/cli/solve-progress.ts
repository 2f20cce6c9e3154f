import type { JournalEvent } from '../journal/index.ts'
import { countText } from '../support/index.ts'
import { msText, plural } from './figures.ts'
import { Arrivals } from './transfer.ts'

/** The progress of a task, from the events of its journal. */
export class SolveProgress {
  readonly #started = performance.now()
  #total = ''
  #place = 'starting'
  #doing = 'waiting for a sandbox'
  #tokens = 0
  #calls = 0
  /** The files that the script left, while they come. */
  #arrivals = new Arrivals()

  take(event: JournalEvent): void {
    switch (event.type) {
      case 'run_started':
        this.#total = event.mode === 'plan' ? `/${event.max_retries + 1}` : ''
        return
      case 'prompt_written':
        this.#place = placeText(event, this.#total)
        this.#calls = 0
        this.#doing = 'asking the model'
        return
      case 'script_generated':
        this.#tokens += (event.prompt_tokens ?? 0) + (event.completion_tokens ?? 0)
        this.#doing = 'checking the script'
        return
      case 'script_checked':
        this.#doing = 'waiting for a sandbox'
        return
      case 'proposal_decided':
        this.#doing = 'waiting for a sandbox'
        return
      case 'sandbox_assigned':
        this.#doing = 'running the script'
        this.#arrivals = new Arrivals()
        return
      case 'tool_called':
        this.#calls += 1
        return
      case 'script_executed':
        this.#doing = 'reading the result'
        this.#arrivals = new Arrivals()
        return
      default:
    }
  }

  takeFile(file: { readonly size: number }): void {
    this.#arrivals.take(file)
  }

  /** Tool calls of the attempt under way, or of the last one. */
  get calls(): number {
    return this.#calls
  }

  /** The line at the bottom of a terminal. */
  text(): string {
    const calls = this.#calls === 0 ? '' : `, ${plural(this.#calls, 'tool call')} so far`
    const tokens = this.#tokens === 0 ? '' : ` · ${countText(this.#tokens)} tokens`
    return `${this.#place}: ${this.#arrivals.text ?? this.#doing}${calls}${tokens} · ${msText(performance.now() - this.#started)} · Ctrl-C cancels`
  }
}

/**
 * The place of an event: `attempt 2/4`, `step 3, attempt 1`.
 * @param total the text after the number of an attempt in PLAN mode.
 */
export function placeText(
  { step, attempt }: { readonly step: number | null; readonly attempt: number },
  total: string = '',
): string {
  return step === null ? `attempt ${attempt}${total}` : `step ${step}, attempt ${attempt}`
}
