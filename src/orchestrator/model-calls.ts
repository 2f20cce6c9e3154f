import { messageOf } from '../errors/index.ts'
import type { Place } from '../journal/index.ts'
import { callModel, digestOf, type ModelAnswer } from '../llm/index.ts'
import { EndTask } from './end-task.ts'
import type { ActiveTask } from './active-task.ts'

/** Maximum characters of an answer without a script in the journal. */
const MAX_ANSWER = 2000
/** Maximum characters of the error of a model. */
const MAX_ERROR = 4000

/** An answer with its cost; null if the cost is unknown. */
export type PricedAnswer = ModelAnswer & { readonly cost: number | null }

/** The calls of the model in one task: asks, counts tokens, and records prompts and answers. */
export class ModelCalls {
  readonly #task: ActiveTask

  constructor(task: ActiveTask) {
    this.#task = task
  }

  /** Asks the model. The prompt is redacted first: no secret reaches a model. @throws EndTask */
  async ask(place: Place, text: string): Promise<PricedAnswer> {
    const { job, journal, redactor, signal, spending } = this.#task
    const prompt = redactor.text(text)
    const kept = job.keepPrompts ? prompt : null
    journal.write({ type: 'prompt_written', ...place, digest: digestOf(prompt), chars: prompt.length, text: kept })
    let answer: ModelAnswer
    try {
      answer = await callModel(job.llmCall, prompt, { signal, timeoutMs: job.llmTimeoutMs })
    } catch (error) {
      signal.throwIfAborted()
      // The error of a client may quote the whole answer of a server.
      const message = redactor.head(messageOf(error).slice(0, MAX_ERROR), MAX_ERROR)
      throw new EndTask('model-failed', message, { cause: error })
    }
    const cost = spending.addAnswer(prompt.length, answer)
    if (cost === null && job.budget.cost !== undefined) {
      const { model } = answer
      const named = model === null ? 'a model that does not report its name' : `the model ${JSON.stringify(model)}`
      throw new EndTask('budget-spent', `budget.cost: pricing has no price for ${named}, so its cost cannot be bounded`)
    }
    return { ...answer, cost }
  }

  /** Records an answer, with the script that was found in it. */
  record(place: Place, answer: PricedAnswer, script: string | null): void {
    const { model, promptTokens, cachedPromptTokens, completionTokens, cost, latencyMs, text } = answer
    const { journal, redactor } = this.#task
    journal.write({
      type: 'script_generated',
      ...place,
      model,
      prompt_tokens: promptTokens,
      cached_prompt_tokens: cachedPromptTokens,
      completion_tokens: completionTokens,
      cost,
      latency_ms: latencyMs,
      answer_chars: text.length,
      script,
      script_digest: script === null ? null : digestOf(script),
      // The cut may split a secret: `head` removes the partial one.
      answer: script === null ? redactor.head(text.slice(0, MAX_ANSWER), MAX_ANSWER) : null,
    })
  }
}
