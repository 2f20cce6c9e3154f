import { messageOf } from '../errors/index.ts'

/** What a model answered (mission: LLMCallResult; requirement OR-01). Only `text` is needed. */
export interface LLMCallResult {
  /** The answer: a script, in whatever fences or words the model wrapped it. */
  readonly text: string
  /** Tokens of the prompt, as the provider counts them. */
  readonly promptTokens?: number | undefined
  /** Tokens of the answer. */
  readonly completionTokens?: number | undefined
  /** How long the answer took, in milliseconds; measured by the caller of the function where it is absent. */
  readonly latencyMs?: number | undefined
  /** The model that answered, as the provider names it. */
  readonly model?: string | undefined
}

/** What a model is told beside the prompt. */
export interface LLMCallContext {
  /** Fires when nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /** To be told of what passes and is tried again, so that an answer that never comes has a reason. */
  readonly onProblem?: ((problem: string) => void) | undefined
}

/**
 * Any async function from a prompt to an answer (mission: LLMCaller; requirements OR-01, OR-10). Different ones can
 * serve different roles. A plain string counts as an answer, too.
 */
export type LLMCaller = (prompt: string, context: LLMCallContext) => Promise<LLMCallResult | string>

/** An answer with what is known of it filled in. */
export interface ModelAnswer {
  readonly text: string
  /** Null where nobody counted. */
  readonly promptTokens: number | null
  readonly completionTokens: number | null
  readonly latencyMs: number
  readonly model: string | null
}

/** A longer timer would go off at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** Why a call of a model came to nothing. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}

/**
 * Calls a model and takes what it says at its word only where the word is usable.
 * @param timeoutMs how long it may take.
 * @throws ModelError when it throws, does not answer in time, or answers with what is no answer; the reason of `signal`
 * when that fires first.
 */
export async function callModel(
  caller: LLMCaller,
  prompt: string,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<ModelAnswer> {
  const started = performance.now()
  const answer = await answered(caller, prompt, signal, timeoutMs)
  const latencyMs = performance.now() - started
  const given: unknown = typeof answer === 'string' ? { text: answer } : answer
  if (typeof given !== 'object' || given === null || !('text' in given) || typeof given.text !== 'string') {
    throw new ModelError('the model gave no text: a caller must resolve to { text } or to a string')
  }
  const { text, promptTokens, completionTokens, latencyMs: told, model } = given as LLMCallResult
  return {
    text,
    promptTokens: countOf(promptTokens),
    completionTokens: countOf(completionTokens),
    latencyMs: Math.round((countOf(told) ?? latencyMs) * 1000) / 1000,
    model: typeof model === 'string' ? model : null,
  }
}

async function answered(caller: LLMCaller, prompt: string, signal: AbortSignal, timeoutMs: number): Promise<unknown> {
  signal.throwIfAborted()
  const own = new AbortController()
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => undefined)
  const end = (reason: unknown): void => {
    // In this order: what the caller makes of the abort comes too late to be taken for its answer.
    ended.reject(reason)
    own.abort(reason)
  }
  const onAbort = (): void => end(signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  let last: string | undefined
  const onTime = (): void => {
    const why = last === undefined ? '' : `; the last problem: ${last}`
    end(new ModelError(`the model did not answer within ${timeoutMs} ms${why}`))
  }
  const timer = setTimeout(onTime, Math.min(timeoutMs, MAX_TIMER_MS))
  const context: LLMCallContext = {
    signal: own.signal,
    onProblem: (problem) => {
      last = problem
    },
  }
  try {
    return await Promise.race([called(caller, prompt, context), ended.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

async function called(caller: LLMCaller, prompt: string, context: LLMCallContext): Promise<unknown> {
  try {
    return await caller(prompt, context)
  } catch (error) {
    throw error instanceof ModelError
      ? error
      : new ModelError(`the model failed: ${messageOf(error)}`, { cause: error })
  }
}

function countOf(given: unknown): number | null {
  return typeof given === 'number' && Number.isFinite(given) && given >= 0 ? given : null
}
