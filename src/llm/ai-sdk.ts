import { messageOf } from '../errors/index.ts'
import { type LLMCaller, ModelError } from './caller.ts'
import { field, numberIn, stringIn, textIn } from './loose.ts'
import { isTransient, pauseOf, type CallFailure, retryCall } from './retry-call.ts'

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

/** True for a language model of the AI SDK. */
export function isAiSdkModel(given: unknown): given is AiSdkModel {
  return (
    ((typeof given === 'object' && given !== null) || typeof given === 'function') &&
    'doGenerate' in given &&
    typeof given.doGenerate === 'function' &&
    'specificationVersion' in given
  )
}

/**
 * Returns a caller of a model of the AI SDK that does not need the package `ai`. Like that package, it retries after a transient
 * failure.
 */
export function aiSdkCaller(model: AiSdkModel): LLMCaller {
  return async (prompt, { signal, onProblem }) => {
    const { answer } = await retryCall(
      async () => {
        try {
          const given = await model.doGenerate({
            prompt: [{ role: 'user', content: [{ type: 'text', text: prompt }] }],
            abortSignal: signal,
          })
          return { answer: given }
        } catch (error) {
          return toCallFailure(error)
        }
      },
      { signal, onProblem },
    )
    if (typeof answer !== 'object' || answer === null)
      throw new ModelError('the model of the AI SDK returned no answer')
    const usage = field(answer, 'usage')
    return {
      text: textIn(field(answer, 'content')),
      promptTokens: tokensOf(field(usage, 'inputTokens')),
      cachedPromptTokens:
        numberIn(field(usage, 'cachedInputTokens')) ?? numberIn(field(field(usage, 'inputTokens'), 'cacheRead')),
      completionTokens: tokensOf(field(usage, 'outputTokens')),
      model: stringIn(field(field(answer, 'response'), 'modelId')) ?? model.modelId,
    }
  }
}

/** Converts an `APICallError` that a retry may resolve to a failure. @throws ModelError for any other error. */
function toCallFailure(error: unknown): CallFailure {
  const status = numberIn(field(error, 'statusCode'))
  const isRetryable = field(error, 'isRetryable')
  const canRetry = typeof isRetryable === 'boolean' ? isRetryable : status !== undefined && isTransient(status)
  if (!canRetry) throw new ModelError(`the model failed: ${messageOf(error)}`, { cause: error })
  return {
    source: `the model of the AI SDK ${status === undefined ? 'cannot be reached' : `answered ${status}`}`,
    detail: messageOf(error),
    isRetryable: canRetry,
    pauseMs: pauseOf(stringIn(field(field(error, 'responseHeaders'), 'retry-after'))),
    cause: error,
  }
}

/** The count of tokens: a number in version 2, an object with its total since version 3. */
function tokensOf(given: unknown): number | undefined {
  return numberIn(given) ?? numberIn(field(given, 'total'))
}
