import type { LLMCaller, LLMCallResult } from '../llm/index.ts'

/** One answer, or what makes it from the prompt. */
export type ScriptedAnswer = string | LLMCallResult | ((prompt: string) => string | LLMCallResult | Promise<string>)

/** A model for tests, with what it was asked. */
export interface ScriptedModel {
  readonly call: LLMCaller
  /** All prompts so far. */
  readonly prompts: readonly string[]
}

/** A model that gives these answers one after the other; the last one again and again. */
export function scriptedModel(...answers: readonly [ScriptedAnswer, ...ScriptedAnswer[]]): ScriptedModel {
  const prompts: string[] = []
  return {
    prompts,
    async call(prompt) {
      const answer = answers[Math.min(prompts.length, answers.length - 1)] ?? ''
      prompts.push(prompt)
      return typeof answer === 'function' ? answer(prompt) : answer
    },
  }
}
