import type { LLMCaller, LLMCallResult } from '../llm/index.ts'

/** One answer, or a function that makes it from the prompt. */
export type ScriptedAnswer = string | LLMCallResult | ((prompt: string) => string | LLMCallResult | Promise<string>)

/** A model for tests: a function that takes a prompt, with the prompts that it received. */
export interface ScriptedModel extends LLMCaller {
  /** All prompts so far. */
  readonly prompts: readonly string[]
}

/** A model that gives these answers in order, and repeats the last. */
export function scriptedModel(...answers: readonly [ScriptedAnswer, ...ScriptedAnswer[]]): ScriptedModel {
  const prompts: string[] = []
  const model: LLMCaller = async (prompt) => {
    const answer = answers[Math.min(prompts.length, answers.length - 1)] ?? ''
    prompts.push(prompt)
    return typeof answer === 'function' ? answer(prompt) : answer
  }
  return Object.assign(model, { prompts })
}
