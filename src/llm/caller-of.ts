import { type AiSdkModel, aiSdkCaller, isAiSdkModel } from './ai-sdk.ts'
import type { LLMCaller } from './caller.ts'
import { isLangChainModel, langChainCaller, type LangChainModel } from './langchain.ts'

/** A model: any async function, a language model of the AI SDK, or a chat model of LangChain. */
export type ModelInput = LLMCaller | AiSdkModel | LangChainModel

/**
 * Converts a model to a function from a prompt to an answer.
 * @throws TypeError if the value is not a {@link ModelInput}.
 */
export function callerOf(model: ModelInput): LLMCaller {
  // Models of LangChain are callable in some versions: test for them before functions.
  if (isAiSdkModel(model)) return aiSdkCaller(model)
  if (isLangChainModel(model)) return langChainCaller(model)
  if (typeof model === 'function') return model
  throw new TypeError(
    'model: must be an async function from a prompt to { text }, a language model of the AI SDK (version 5 or later), or a chat model of LangChain; a model id alone needs chatCompletions({ url, model })',
  )
}
