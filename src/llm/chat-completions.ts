import { messageOf } from '../errors/index.ts'
import { Redactor } from '../redaction/index.ts'
import { formatValue, refuseBeyond } from '../support/index.ts'
import { type LLMCaller, type LLMCallResult, ModelError } from './caller.ts'
import { field, numberIn, stringIn, textIn } from './loose.ts'
import {
  FIRST_PAUSE_MS,
  isNetworkTrouble,
  isTransient,
  pauseOf,
  type CallFailure,
  retryCall,
  RETRIES,
} from './retry-call.ts'

/** Options of {@link chatCompletions}. */
export interface ChatCompletionsOptions {
  /** The address before `/chat/completions`: `https://api.openai.com/v1`, `http://127.0.0.1:11434/v1` … */
  readonly url: string
  readonly model: string
  /** Sent as a bearer token. */
  readonly apiKey?: string | undefined
  /** Added to the body: `{ temperature: 0 }` … */
  readonly body?: Readonly<Record<string, unknown>> | undefined
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The number of retries after 429, 5xx or trouble with the network. Default 4. */
  readonly maxRetries?: number | undefined
  /** The first pause in milliseconds; each further one is twice as long. Default 500. */
  readonly firstPauseMs?: number | undefined
}

const MAX_RESPONSE_BYTES = 16 * 1024 * 1024
/** Maximum values of a response: far more than any response has, even with log probabilities. */
const MAX_RESPONSE_PARTS = 256 * 1024
/** Maximum bytes that are read of an error response. */
const HEAD_BYTES = 1024
const ERROR_CHARS = 500

/**
 * A model behind an OpenAI-compatible `/chat/completions`. 429 and 5xx are retried after the
 * time in `Retry-After` or a pause that doubles; a redirect is an error. Errors quote the response without the key
 * and the headers.
 * @throws TypeError for an invalid option.
 */
export function chatCompletions(options: ChatCompletionsOptions): LLMCaller {
  const { model, apiKey, body = {}, headers = {}, maxRetries = RETRIES, firstPauseMs = FIRST_PAUSE_MS } = options
  const url = endpointOf(options.url)
  if (typeof model !== 'string' || model === '') throw new TypeError('chatCompletions: model must be a name')
  checkNumber('maxRetries', maxRetries)
  checkNumber('firstPauseMs', firstPauseMs)
  const sent = headersOf(apiKey, headers)
  const redactor = redactorOf(url, apiKey, headers)
  return async (prompt, { signal, onProblem }) => {
    const started = performance.now()
    const request = {
      method: 'POST',
      headers: sent,
      body: JSON.stringify({ ...body, model, messages: [{ role: 'user', content: prompt }] }),
      signal,
      // fetch would send the key and the headers to any address that the server names.
      redirect: 'manual' as const,
    }
    const response = await retryCall(() => sendRequest(url, request, redactor), {
      maxRetries,
      firstPauseMs,
      signal,
      onProblem,
    })
    return { ...resultIn(response.body, url, redactor), latencyMs: performance.now() - started }
  }
}

async function sendRequest(
  url: URL,
  request: RequestInit & { readonly signal: AbortSignal },
  redactor: Redactor,
): Promise<{ readonly body: ArrayBuffer } | CallFailure> {
  try {
    const response = await fetch(url, request)
    if (response.ok) return { body: await bodyOf(response, url) }
    const { status, headers } = response
    return {
      source: `${addressOf(url)} answered ${status}${redirectText(response, url, redactor)}`,
      detail: quote(await readHead(response, request.signal), redactor),
      isRetryable: isTransient(status),
      pauseMs: pauseOf(headers.get('retry-after')),
    }
  } catch (error) {
    request.signal.throwIfAborted()
    if (error instanceof ModelError) throw error
    const { cause } = error as Error
    const why = cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`
    const isRetryable = isNetworkTrouble(error) || isNetworkTrouble(cause)
    return { source: `${addressOf(url)} cannot be reached`, detail: redactor.text(why), isRetryable }
  }
}

/** The target of a redirect, without its query, for a message; empty if the response is not a redirect. */
function redirectText({ status, headers }: Response, url: URL, redactor: Redactor): string {
  const location = headers.get('location')
  if (location === null || status < 300 || status > 399) return ''
  const target = URL.parse(location, url.href)
  const where = target === null ? '' : ` to ${quote(addressOf(target), redactor)}`
  return `, a redirect${where} that is not followed: keys go to the given address only`
}

function resultIn(body: ArrayBuffer, url: URL, redactor: Redactor): LLMCallResult {
  const bytes = Buffer.from(body)
  const text = new TextDecoder().decode(bytes)
  const quoteResponse = (): string => quote(text, redactor)
  let given: unknown
  try {
    refuseBeyond({ parts: MAX_RESPONSE_PARTS }, bytes)
    body.resize(0) // releases its memory before the values are allocated
    given = JSON.parse(text)
  } catch (error) {
    const problem = error instanceof RangeError ? `answered with ${error.message}` : 'did not answer with JSON'
    throw new ModelError(`${addressOf(url)} ${problem}: ${quoteResponse()}`)
  }
  const choices = field(given, 'choices')
  const content = field(field(Array.isArray(choices) ? choices[0] : undefined, 'message'), 'content')
  if (content === undefined) {
    throw new ModelError(`${addressOf(url)} answered without choices[0].message.content: ${quoteResponse()}`)
  }
  const usage = field(given, 'usage')
  return {
    text: textIn(content),
    promptTokens: numberIn(field(usage, 'prompt_tokens')),
    cachedPromptTokens: numberIn(field(field(usage, 'prompt_tokens_details'), 'cached_tokens')),
    completionTokens: numberIn(field(usage, 'completion_tokens')),
    model: stringIn(field(given, 'model')),
  }
}

async function bodyOf(response: Response, url: URL): Promise<ArrayBuffer> {
  // Grows in place, because pieces that are joined at the end would be in memory twice.
  const bytes = new ArrayBuffer(0, { maxByteLength: MAX_RESPONSE_BYTES })
  for await (const chunk of chunksOf(response)) {
    const at = bytes.byteLength
    if (at + chunk.length > MAX_RESPONSE_BYTES) {
      throw new ModelError(`${addressOf(url)} answered with more than ${MAX_RESPONSE_BYTES} bytes`)
    }
    bytes.resize(at + chunk.length)
    new Uint8Array(bytes).set(chunk, at)
  }
  return bytes
}

/** Reads the beginning of an error response, which may be endless or break off. */
async function readHead(response: Response, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for await (const chunk of chunksOf(response)) {
      chunks.push(chunk)
      length += chunk.length
      if (length >= HEAD_BYTES) break
    }
  } catch {
    signal.throwIfAborted()
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, HEAD_BYTES))
}

function chunksOf({ body }: Response): AsyncIterable<Uint8Array> | readonly Uint8Array[] {
  return body === null ? [] : (body as AsyncIterable<Uint8Array>)
}

/** The beginning of a response, redacted. */
function quote(text: string, redactor: Redactor): string {
  // Redacted before the cut, because a truncated secret is not found. The text itself may end within a secret.
  return redactor.text(text, { end: true }).slice(0, ERROR_CHARS)
}

function endpointOf(given: unknown): URL {
  const base = typeof given === 'string' && URL.canParse(given) ? new URL(given) : undefined
  if (base === undefined || !/^https?:$/.test(base.protocol)) {
    throw new TypeError(`chatCompletions: url ${formatAddress(given)} is not an http or https address`)
  }
  if (base.username !== '' || base.password !== '') {
    throw new TypeError('chatCompletions: url must not hold a user or a password: use apiKey or headers')
  }
  const path = base.pathname.replace(/\/+$/, '')
  base.pathname = path.endsWith('/chat/completions') ? path : `${path}/chat/completions`
  return base
}

/** The address without its query, where some providers put keys. */
function addressOf({ origin, pathname }: URL): string {
  return `${origin}${pathname}`
}

/** An invalid address for a message, without a password or key in it. */
function formatAddress(given: unknown): string {
  const text = typeof given === 'string' ? given.replace(/^([^/]*\/\/)?.*@/s, '$1…@').replace(/[?#].*$/s, '?…') : given
  return JSON.stringify(text)
}

/** Creates a redactor for the secrets of a request, which an error response may repeat with or without their scheme. */
function redactorOf(url: URL, apiKey: string | undefined, headers: Readonly<Record<string, string>>): Redactor {
  const query = [...url.searchParams].map(([name, value]): [string, string] => [`query.${name}`, value])
  const secrets: Record<string, string> = apiKey === undefined ? {} : { apiKey }
  const add = (name: string, value: string): void => {
    let own = name
    for (let count = 2; Object.hasOwn(secrets, own); count += 1) own = `${name}#${count}`
    secrets[own] = value
  }
  for (const [name, value] of [...query, ...Object.entries(headers)]) {
    add(name, value)
    const [, credentials] = /^\S+\s+(\S+)$/.exec(value) ?? []
    if (credentials !== undefined) add(`${name}.credentials`, credentials)
  }
  return new Redactor(secrets)
}

/** Creates the headers once, before the first call, because an error of `fetch` would show the key. */
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
  throw new TypeError(`chatCompletions: ${name} must be a whole number of at least 0, not ${formatValue(value)}`)
}
