import { expect } from 'vitest'
import { callModel, chatCompletions, type ChatCompletionsOptions, type ModelAnswer } from '../../../src/llm/index.ts'
import { ANSWER, reply, type Reply } from '../../support/llm/model-server.ts'

const aNumber: unknown = expect.any(Number)

/** Asks the model at an address for an answer to `Hello`. */
export function ask(
  options: Partial<ChatCompletionsOptions> & { readonly url: string },
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelAnswer> {
  const model = chatCompletions({ model: 'coder', firstPauseMs: 1, ...options })
  return callModel(model, 'Hello', { signal, timeoutMs: 30_000 })
}

/** Answers in the form of a provider. */
export const fine: Reply = reply(200, ANSWER)

/** The value of {@link ask} for this answer. */
export const GOT: Readonly<Record<string, unknown>> = {
  text: 'emit_result(1)',
  promptTokens: 11,
  cachedPromptTokens: null,
  completionTokens: 4,
  latencyMs: aNumber,
  model: 'coder-1-2026',
}
