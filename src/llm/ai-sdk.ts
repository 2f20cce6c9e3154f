import { type LLMCaller, ModelError } from './caller.ts'
import { field, numberIn, stringIn, textIn } from './loose.ts'

/** The part of a language model of the AI SDK that is used: its specification, versions 2 and later. */
export interface AiSdkModel {
  readonly specificationVersion: string
  readonly modelId: string
  doGenerate(options: {
    readonly prompt: {
      readonly role: 'user'
      readonly content: { readonly type: 'text'; readonly text: string }[]
    }[]
    readonly abortSignal?: AbortSignal
  }): PromiseLike<unknown>
}

/** Whether something is a language model of the AI SDK. */
export function isAiSdkModel(given: unknown): given is AiSdkModel {
  return (
    ((typeof given === 'object' && given !== null) || typeof given === 'function') &&
    'doGenerate' in given &&
    typeof given.doGenerate === 'function' &&
    'specificationVersion' in given
  )
}

/** Calls it once for each prompt; the package `ai` is not needed. */
export function aiSdkCaller(model: AiSdkModel): LLMCaller {
  return async (prompt, { signal }) => {
    const answer = await model.doGenerate({
      prompt: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
      abortSignal: signal,
    })
    if (typeof answer !== 'object' || answer === null) throw new ModelError('the model of the AI SDK gave no answer')
    const usage = field(answer, 'usage')
    return {
      text: textIn(field(answer, 'content')),
      promptTokens: tokensOf(field(usage, 'inputTokens')),
      completionTokens: tokensOf(field(usage, 'outputTokens')),
      model: stringIn(field(field(answer, 'response'), 'modelId')) ?? model.modelId,
    }
  }
}

/** A number in version 2, an object with its total since version 3. */
function tokensOf(given: unknown): number | undefined {
  return numberIn(given) ?? numberIn(field(given, 'total'))
}
