import { appendFileSync, readFileSync } from 'node:fs'
import { messageOf } from '../errors/index.ts'
import { type LLMCaller, type LLMCallResult, ModelError } from './caller.ts'
import { digestOf } from './digest.ts'
import { field, numberIn, stringIn } from './loose.ts'
import { parseBounded } from '../support/index.ts'

/**
 * A model that writes each answer of another model to a file, one JSON object per line, for {@link replayModel}. Prompts and
 * answers are written in full; a new file is readable by its owner only.
 */
export function recordModel(file: string, model: LLMCaller): LLMCaller {
  return async (prompt, context) => {
    const started = performance.now()
    const answer = await model(prompt, context)
    const given: LLMCallResult = typeof answer === 'string' ? { text: answer } : answer
    const line = {
      prompt_sha256: digestOf(prompt),
      prompt,
      text: given.text,
      model: given.model ?? null,
      prompt_tokens: given.promptTokens ?? null,
      cached_prompt_tokens: given.cachedPromptTokens ?? null,
      completion_tokens: given.completionTokens ?? null,
      latency_ms: Math.round(given.latencyMs ?? performance.now() - started),
    }
    appendFileSync(file, `${JSON.stringify(line)}\n`, { mode: 0o600 })
    return answer
  }
}

/** Options of {@link replayModel}. */
export interface ReplayModelOptions {
  /** `prompt` (the default): the answer to the same prompt; `order`: the next answer, whatever the prompt. */
  readonly match?: 'prompt' | 'order' | undefined
}

/**
 * A model that replays the answers of a file, each once.
 * @throws ModelError at the call if no answer is left; TypeError if the file cannot be read.
 */
export function replayModel(file: string, { match = 'prompt' }: ReplayModelOptions = {}): LLMCaller {
  const left = linesOf(file)
  return async (prompt) => {
    const digest = digestOf(prompt)
    const at = match === 'order' ? 0 : left.findIndex((line) => field(line, 'prompt_sha256') === digest)
    const [line] = at === -1 ? [] : left.splice(at, 1)
    if (line === undefined) {
      const problem =
        match === 'order' ? 'all its answers are used' : `it has no answer to the prompt ${digest.slice(0, 12)}`
      throw new ModelError(`${file}: ${problem}; record it again`)
    }
    return {
      text: stringIn(field(line, 'text')) ?? '',
      model: stringIn(field(line, 'model')),
      promptTokens: numberIn(field(line, 'prompt_tokens')),
      cachedPromptTokens: numberIn(field(line, 'cached_prompt_tokens')),
      completionTokens: numberIn(field(line, 'completion_tokens')),
      latencyMs: numberIn(field(line, 'latency_ms')),
    }
  }
}

function linesOf(file: string): unknown[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) => (line.trim() === '' ? [] : [answerIn(line, index + 1)]))
  } catch (error) {
    throw new TypeError(`replayModel: ${file} cannot be read: ${messageOf(error)}`, { cause: error })
  }
}

function answerIn(line: string, number: number): unknown {
  let given: unknown
  try {
    given = parseBounded(line)
  } catch (error) {
    throw new Error(`line ${number}: ${messageOf(error)}`, { cause: error })
  }
  if (stringIn(field(given, 'text')) === undefined) throw new Error(`line ${number} is not a recorded answer`)
  return given
}
