import { messageOf } from '../errors/index.ts'
import { type LLMCaller, type LLMCallResult, ModelError } from '../llm/index.ts'

/** One answer, or a function that returns it for a prompt. */

export type ScriptedAnswer = string | LLMCallResult | ((prompt: string) => string | LLMCallResult | Promise<string>)

/** A model for tests: a function that takes a prompt, with the prompts that it received. */
export interface ScriptedModel extends LLMCaller {
  /** All prompts so far. */
  readonly prompts: readonly string[]
}

/**
 * A model that gives these answers in order, and repeats the last. If a function throws, the model call is not retried, so that a
 * failed assertion in it ends the task.
 */
export function scriptedModel(...answers: readonly [ScriptedAnswer, ...ScriptedAnswer[]]): ScriptedModel {
  const prompts: string[] = []
  const model: LLMCaller = async (prompt) => {
    const answer = answers[Math.min(prompts.length, answers.length - 1)] ?? ''
    prompts.push(prompt)
    if (typeof answer !== 'function') return answer
    try {
      return await answer(prompt)
    } catch (error) {
      throw new ModelError(`the model failed: ${messageOf(error)}`, { cause: error })
    }
  }
  return Object.assign(model, { prompts })
}
