import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors/index.ts'

/** The answer of a model. Only `text` is required. */
export interface LLMCallResult {
  /** The answer: a script, with any fences or text around it. */
  readonly text: string
  /** Tokens of the prompt, as the provider counts them. */
  readonly promptTokens?: number | undefined
  /** Of these, the tokens that the provider served from its cache. */
  readonly cachedPromptTokens?: number | undefined
  /** Tokens of the answer. */
  readonly completionTokens?: number | undefined
  /** The time of the answer in milliseconds; measured if absent. */
  readonly latencyMs?: number | undefined
  /** The model that answered, as the provider names it. */
  readonly model?: string | undefined
}

/** The second argument of a model. */
export interface LLMCallContext {
  /** Fires when the answer is no longer needed. */
  readonly signal: AbortSignal
  /** Call it for each problem that is retried; a timeout then names the last one. */
  readonly onProblem?: ((problem: string) => void) | undefined
}

/**
 * Any async function from a prompt to an answer, which may also be a plain string. A function that throws is called once more after
 * 100 ms, within the time for an answer, unless it throws a {@link ModelError}.
 */
export type LLMCaller = (prompt: string, context: LLMCallContext) => Promise<LLMCallResult | string>

/** An answer with all fields filled in. */
export interface ModelAnswer {
  readonly text: string
  /** Null if the provider does not count tokens. */
  readonly promptTokens: number | null
  readonly cachedPromptTokens: number | null
  readonly completionTokens: number | null
  readonly latencyMs: number
  readonly model: string | null
}

/** The pause before a model that threw is asked again, in milliseconds. */
const PAUSE_MS = 100

/** A longer timer would fire immediately. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** The failure of a model call. A model that throws one is not asked again. */
export class ModelError extends Error {
  override readonly name = 'ModelError'
}

/**
 * Calls a model and checks its answer. A model that throws anything but a {@link ModelError} is asked once more.
 * @param timeoutMs the maximum time of the answer.
 * @throws ModelError if the model throws, does not answer in time, or gives an invalid answer; the reason of `signal`
 * if that fires first.
 */
export async function callModel(
  caller: LLMCaller,
  prompt: string,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<ModelAnswer> {
  const started = performance.now()
  const answer = await callUntilEnd(caller, prompt, signal, timeoutMs)
  const latencyMs = performance.now() - started
  const given: unknown = typeof answer === 'string' ? { text: answer } : answer
  if (typeof given !== 'object' || given === null || !('text' in given) || typeof given.text !== 'string') {
    throw new ModelError('the model returned no text: a caller must resolve to { text } or to a string')
  }
  const {
    text,
    promptTokens,
    cachedPromptTokens,
    completionTokens,
    latencyMs: reportedMs,
    model,
  } = given as LLMCallResult
  return {
    text,
    promptTokens: countOf(promptTokens),
    cachedPromptTokens: countOf(cachedPromptTokens),
    completionTokens: countOf(completionTokens),
    latencyMs: Math.round((countOf(reportedMs) ?? latencyMs) * 1000) / 1000,
    model: typeof model === 'string' ? model : null,
  }
}

async function callUntilEnd(
  caller: LLMCaller,
  prompt: string,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<unknown> {
  signal.throwIfAborted()
  const own = new AbortController()
  const ended = Promise.withResolvers<never>()
  ended.promise.catch(() => undefined)
  const end = (reason: unknown): void => {
    // Rejected first, so that a result of the abort does not count as an answer.
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
    return await Promise.race([callOrFail(caller, prompt, context), ended.promise])
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', onAbort)
  }
}

async function callOrFail(caller: LLMCaller, prompt: string, context: LLMCallContext): Promise<unknown> {
  try {
    return await caller(prompt, context)
  } catch (error) {
    if (error instanceof ModelError) throw error
    context.onProblem?.(`the model failed: ${messageOf(error)}`)
  }
  await sleep(PAUSE_MS, undefined, { signal: context.signal })
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
