import type { LLMCaller } from './caller.ts'
import { field, numberIn, stringIn, textIn } from './loose.ts'

/** The part of a chat model of LangChain that is used. */
export interface LangChainModel {
  invoke(input: string, options?: { readonly signal?: AbortSignal }): Promise<unknown>
}

/** True for a model of LangChain: an object with `invoke`. */
export function isLangChainModel(given: unknown): given is LangChainModel {
  return (
    ((typeof given === 'object' && given !== null) || typeof given === 'function') &&
    'invoke' in given &&
    typeof given.invoke === 'function'
  )
}

/** Returns a caller that invokes the model once for each prompt. */
export function langChainCaller(model: LangChainModel): LLMCaller {
  return async (prompt, { signal }) => {
    const message = await model.invoke(prompt, { signal })
    if (typeof message === 'string') return message
    const usage = field(message, 'usage_metadata')
    return {
      text: textIn(field(message, 'content')),
      promptTokens: numberIn(field(usage, 'input_tokens')),
      cachedPromptTokens: numberIn(field(field(usage, 'input_token_details'), 'cache_read')),
      completionTokens: numberIn(field(usage, 'output_tokens')),
      model: stringIn(field(field(message, 'response_metadata'), 'model_name')) ?? stringIn(field(model, 'model')),
    }
  }
}
