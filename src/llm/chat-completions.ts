import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../errors/index.ts'
import { type LLMCaller, type LLMCallResult, ModelError } from './caller.ts'
import { field, numberIn, stringIn, textIn } from './loose.ts'

/** Where a model is. */
export interface ChatCompletionsOptions {
  /** What stands before `/chat/completions`: `https://api.openai.com/v1`, `http://127.0.0.1:11434/v1` … */
  readonly url: string
  readonly model: string
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined
  /** Added to the body: `{ temperature: 0 }` … */
  readonly body?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** How often a call is made again after 429, 5xx or a broken connection. Default 4. */
  readonly maxRetries?: number | undefined
  /** The first pause between two of them, in milliseconds; each further one is twice as long. Default 500. */
  readonly firstPauseMs?: number | undefined
}

const RETRIES = 4
const FIRST_PAUSE_MS = 500
const MAX_PAUSE_MS = 60_000
const MAX_ANSWER_BYTES = 16 * 1024 * 1024
const ERROR_CHARS = 500

/**
 * A model behind an OpenAI-compatible `/chat/completions` (requirement OR-10). 429 and 5xx are tried again, after the
 * time that `Retry-After` asks for or a pause that doubles.
 * @throws TypeError for an option that cannot be.
 */
export function chatCompletions(options: ChatCompletionsOptions): LLMCaller {
  const { model, apiKey, body = {}, headers = {}, maxRetries = RETRIES, firstPauseMs = FIRST_PAUSE_MS } = options
  const url = endpointOf(options.url)
  if (typeof model !== 'string' || model === '') throw new TypeError('chatCompletions: model must be a name')
  checkNumber('maxRetries', maxRetries)
  checkNumber('firstPauseMs', firstPauseMs)
  const sent = headersOf(apiKey, headers)
  return async (prompt, { signal }) => {
    const started = performance.now()
    for (let tried = 0; ; tried += 1) {
      const reply = await asked(url, {
        method: 'POST',
        headers: sent,
        body: JSON.stringify({ ...body, model, messages: [{ role: 'user', content: prompt }] }),
        signal,
      })
      if ('answer' in reply) return { ...reply.answer, latencyMs: performance.now() - started }
      if (!reply.again || tried >= maxRetries) throw new ModelError(reply.problem)
      await sleep(Math.min(MAX_PAUSE_MS, reply.pauseMs ?? firstPauseMs * 2 ** tried), undefined, { signal })
    }
  }
}

type Reply =
  | { readonly answer: LLMCallResult }
  | { readonly problem: string; readonly again: boolean; readonly pauseMs: number | undefined }

async function asked(url: URL, request: RequestInit & { signal: AbortSignal }): Promise<Reply> {
  let response: Response
  let text: string
  try {
    response = await fetch(url, request)
    text = await boundedText(response)
  } catch (error) {
    request.signal.throwIfAborted()
    if (error instanceof ModelError) throw error
    const { cause } = error as Error
    const why = cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`
    return { problem: `${shown(url)} cannot be reached: ${why}`, again: true, pauseMs: undefined }
  }
  const { status, headers } = response
  if (!response.ok) {
    return {
      problem: `${shown(url)} answered ${status}: ${text.slice(0, ERROR_CHARS)}`,
      again: status === 429 || status >= 500,
      pauseMs: pauseOf(headers.get('retry-after')),
    }
  }
  return { answer: answerIn(text, url) }
}

function answerIn(text: string, url: URL): LLMCallResult {
  let given: unknown
  try {
    given = JSON.parse(text)
  } catch {
    throw new ModelError(`${shown(url)} answered no JSON: ${text.slice(0, ERROR_CHARS)}`)
  }
  const choices = field(given, 'choices')
  const content = field(field(Array.isArray(choices) ? choices[0] : undefined, 'message'), 'content')
  if (content === undefined) {
    throw new ModelError(`${shown(url)} answered without choices[0].message.content: ${text.slice(0, ERROR_CHARS)}`)
  }
  const usage = field(given, 'usage')
  return {
    text: textIn(content),
    promptTokens: numberIn(field(usage, 'prompt_tokens')),
    completionTokens: numberIn(field(usage, 'completion_tokens')),
    model: stringIn(field(given, 'model')),
  }
}

async function boundedText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  if (response.body === null) return ''
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) throw new ModelError(`the answer has more than ${MAX_ANSWER_BYTES} bytes`)
    chunks.push(chunk)
  }
  // Without a byte order mark, which JSON.parse does not take.
  return new TextDecoder().decode(Buffer.concat(chunks))
}

/** Seconds, or a date. */
function pauseOf(header: string | null): number | undefined {
  if (header === null) return undefined
  const seconds = Number(header)
  const ms = Number.isFinite(seconds) ? seconds * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined
}

function endpointOf(given: unknown): URL {
  const base = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new TypeError(`chatCompletions: url ${JSON.stringify(given)} is no http or https address`)
  }
  if (base.username !== '' || base.password !== '') {
    throw new TypeError('chatCompletions: url must not hold a user or a password: use apiKey or headers')
  }
  const path = base.pathname.replace(/\/+$/, '')
  base.pathname = path.endsWith('/chat/completions') ? path : `${path}/chat/completions`
  return base
}

/** Without its query, where some providers have their keys. */
function shown({ origin, pathname }: URL): string {
  return `${origin}${pathname}`
}

/** Made once and early: the error of a late one would show the key. */
function headersOf(apiKey: string | undefined, headers: Readonly<Record<string, string>>): Headers {
  try {
    const bearer = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    const made = new Headers({ 'content-type': 'application/json', ...bearer })
    for (const [name, value] of Object.entries(headers)) made.set(name, value)
    return made
  } catch {
    throw new TypeError('chatCompletions: apiKey or headers hold characters that no HTTP header can have')
  }
}

function checkNumber(name: string, value: unknown): void {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return
  throw new TypeError(`chatCompletions: ${name} must be a whole number of at least 0`)
}
