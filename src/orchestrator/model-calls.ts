import { messageOf } from '../errors/index.ts'
import type { Place } from '../journal/index.ts'
import { callModel, digestOf, type ModelAnswer } from '../llm/index.ts'
import { EndRun } from './end-run.ts'
import type { TaskRun } from './task-run.ts'

/** Maximum characters of an answer without a script in the journal. */
const MAX_ANSWER = 2000

/** The calls of the model in one run: asks, counts tokens, and records prompts and answers. */
export class ModelCalls {
  readonly #run: TaskRun

  constructor(run: TaskRun) {
    this.#run = run
  }

  /** Asks the model. The prompt is redacted first: no secret reaches a model. @throws EndRun */
  async ask(place: Place, text: string): Promise<ModelAnswer> {
    const { job, journal, redactor, signal, spending } = this.#run
    const prompt = redactor.text(text)
    const kept = job.keepPrompts ? prompt : null
    journal.write({ type: 'prompt_written', ...place, digest: digestOf(prompt), chars: prompt.length, text: kept })
    let answer: ModelAnswer
    try {
      answer = await callModel(job.llmCall, prompt, { signal, timeoutMs: job.llmTimeoutMs })
    } catch (error) {
      signal.throwIfAborted()
      throw new EndRun('model-failed', messageOf(error), { cause: error })
    }
    spending.addAnswer(
      { tokens: answer.promptTokens, chars: prompt.length },
      { tokens: answer.completionTokens, chars: answer.text.length },
    )
    return answer
  }

  /** Records an answer, with the script that was found in it. */
  record(place: Place, answer: ModelAnswer, script: string | null): void {
    const { model, promptTokens, completionTokens, latencyMs, text } = answer
    const { journal, redactor } = this.#run
    journal.write({
      type: 'script_generated',
      ...place,
      model,
      prompt_tokens: promptTokens,
      completion_tokens: completionTokens,
      latency_ms: latencyMs,
      answer_chars: text.length,
      script,
      script_digest: script === null ? null : digestOf(script),
      // The cut may split a secret: `head` removes the partial one.
      answer: script === null ? redactor.head(text.slice(0, MAX_ANSWER), MAX_ANSWER) : null,
    })
  }
}
