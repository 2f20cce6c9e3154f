import { type AiSdkModel, aiSdkCaller, isAiSdkModel } from './ai-sdk.ts'
import type { LLMCaller } from './caller.ts'
import { isLangChainModel, langChainCaller, type LangChainModel } from './langchain.ts'

/** What can write scripts: any async function, a language model of the AI SDK, or a chat model of LangChain. */
export type ModelInput = LLMCaller | AiSdkModel | LangChainModel

/**
 * The model as a function from a prompt to an answer (requirement OR-10).
 * @throws TypeError for what is none of {@link ModelInput}.
 */
export function callerOf(model: ModelInput): LLMCaller {
  // LangChain's models are callable objects in some versions: what they are goes before that they can be called.
  if (isAiSdkModel(model)) return aiSdkCaller(model)
  if (isLangChainModel(model)) return langChainCaller(model)
  if (typeof model === 'function') return model
  throw new TypeError(
    'model: must be an async function from a prompt to { text }, a language model of the AI SDK (version 5 or later), or a chat model of LangChain; a model id alone needs chatCompletions({ url, model })',
  )
}
