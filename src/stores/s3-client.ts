import { setTimeout as sleep } from 'node:timers/promises'
import type { AwsClient } from 'aws4fetch'
import { messageOf, SandglassError } from '../errors/index.ts'
import { formatValue, refuseUnknown, truncate } from '../support/index.ts'
import { throwIfAborted } from './content.ts'

/** Options of {@link storeInS3}. */
export interface S3StoreOptions {
  readonly bucket: string
  /** The address of the server. Default: AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, else that of Amazon for the region. */
  readonly endpoint?: string
  /** Default: AWS_REGION, else us-east-1. */
  readonly region?: string
  /** The prefix of all keys, for a bucket that is shared with other data. Default: none. */
  readonly prefix?: string
  /** Default: AWS_ACCESS_KEY_ID. */
  readonly accessKeyId?: string
  /** Default: AWS_SECRET_ACCESS_KEY. */
  readonly secretAccessKey?: string
  /** Default: AWS_SESSION_TOKEN, unless the keys are given. */
  readonly sessionToken?: string
  /** The time limit of one request, such as a transfer, in milliseconds. Default 300,000. */
  readonly timeoutMs?: number
}

/** One request. */
export interface S3Request {
  readonly method: 'GET' | 'HEAD' | 'PUT' | 'DELETE'
  /** Relative to the prefix. */
  readonly key?: string
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Blob | string
  readonly signal?: AbortSignal | undefined
}

const OPTIONS: readonly string[] = [
  'bucket',
  'endpoint',
  'region',
  'prefix',
  'accessKeyId',
  'secretAccessKey',
  'sessionToken',
  'timeoutMs',
]
const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:[\w-][\w.-]*\/)*$/
const REGION = /^[A-Za-z0-9-]+$/
/** Text that a header can hold. `fetch` would show any other text in its message. */
const HEADER_TEXT = /^[!-~]+$/
/** Limit of a response that is neither a record nor a list. */
const MAX_TEXT_BYTES = 64 * 1024
const FIRST_TEXT_BYTES = 16 * 1024
const TRIES = 4
const FIRST_PAUSE_MS = 100
const TIMEOUT_MS = 300_000

/** Requests to one bucket. Credentials go to its server only: redirects are errors. */
export class S3Client {
  readonly name: string
  readonly prefix: string
  readonly #options: S3StoreOptions
  readonly #base: string
  readonly #timeoutMs: number
  #client: Promise<AwsClient> | undefined

  /** @throws TypeError for an option that does not exist or has an invalid value. */
  constructor(options: S3StoreOptions) {
    refuseUnknown('storeInS3', options, OPTIONS)
    const { bucket, prefix = '', timeoutMs = TIMEOUT_MS } = options
    if (typeof bucket !== 'string' || !BUCKET.test(bucket)) throw wrong('bucket', bucket, 'the name of a bucket')
    const directory = prefix === '' || prefix.endsWith('/') ? prefix : `${prefix}/`
    if (!PREFIX.test(directory)) throw wrong('prefix', prefix, 'a path of letters, digits, ".", "_" and "-"')
    if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1) throw wrong('timeoutMs', timeoutMs, 'at least 1')
    const env = process.env
    const region = options.region ?? env['AWS_REGION'] ?? 'us-east-1'
    const endpoint = options.endpoint ?? env['AWS_ENDPOINT_URL_S3'] ?? env['AWS_ENDPOINT_URL'] ?? amazon(region)
    const url = URL.parse(endpoint)
    if (!REGION.test(region)) throw wrong('region', region, 'letters, digits and "-"')
    if (url === null || !/^https?:$/.test(url.protocol) || hasMore(url))
      // The address may hold a password, so it is not shown.
      throw new TypeError(
        'storeInS3: endpoint: must be an address such as https://s3.example.org, without credentials, query and fragment',
      )
    this.#base = `${url.href.replace(/\/$/, '')}/${bucket}`
    this.#options = { ...options, region }
    this.#timeoutMs = timeoutMs
    this.prefix = directory
    this.name = `the bucket ${bucket} at ${url.host}`
  }

  /**
   * Sends a request; returns refusals, too. Requests that fail on the network or with a server error are sent again, so all of them must
   * be idempotent.
   * @throws SandglassError `store_unreachable`, `store_unusable`, `aborted`.
   */
  async send(request: S3Request): Promise<Response> {
    for (let tried = 1; ; tried++) {
      const response = await this.#sendOnce(request, tried === TRIES)
      if (response !== undefined) return response
      await sleep(FIRST_PAUSE_MS * 2 ** tried * (0.5 + Math.random()))
    }
  }

  /** The text of a response. @throws SandglassError `store_damaged` for one that is too long. */
  async textOf(response: Response, maxBytes: number = MAX_TEXT_BYTES): Promise<string> {
    // One buffer, because a list of pieces of one byte would take a hundred times their size.
    let text = Buffer.allocUnsafe(FIRST_TEXT_BYTES)
    let size = 0
    for await (const part of this.pieces(response)) {
      if (size + part.byteLength > maxBytes)
        throw new SandglassError('store_damaged', `${this.name} sent a response of more than ${maxBytes} bytes`)
      if (size + part.byteLength > text.byteLength) {
        const grown = Buffer.allocUnsafe(Math.min(maxBytes, 2 * (size + part.byteLength)))
        text.copy(grown, 0, 0, size)
        text = grown
      }
      text.set(part, size)
      size += part.byteLength
    }
    return text.toString('utf8', 0, size)
  }

  /** The pieces of a response. @throws SandglassError `store_unreachable` if the connection ends, `aborted`. */
  async *pieces(response: Response, signal?: AbortSignal): AsyncGenerator<Uint8Array, void, void> {
    try {
      if (response.body !== null) yield* response.body as ReadableStream<Uint8Array>
    } catch (error) {
      throwIfAborted(signal)
      throw this.#unreachable(causeOf(error))
    }
  }

  /** The error of a refusal. */
  async refusal(response: Response): Promise<SandglassError> {
    const text = await this.textOf(response).catch(() => '')
    const code = /<Code>(\w{1,100})<\/Code>/.exec(text)?.[1] ?? ''
    // Control characters would take effect in a terminal.
    const statusText = /^[ -~]*$/.test(response.statusText) ? response.statusText : ''
    const reason = truncate(`${response.status} ${code || statusText}`.trim(), 200)
    return new SandglassError('store_unusable', `${this.name} cannot be used: it answers ${reason}`)
  }

  /** Undefined if the request may succeed when it is sent again, and this is not the last try. */
  async #sendOnce(
    { method, key, query = {}, headers, body, signal }: S3Request,
    isLast: boolean,
  ): Promise<Response | undefined> {
    const url = new URL(key === undefined ? this.#base : `${this.#base}/${this.prefix}${key}`)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const client = await (this.#client ??= this.#makeClient())
    const deadline = AbortSignal.timeout(this.#timeoutMs)
    try {
      const signed = await client.sign(url.href, { method, headers: { ...headers }, body: body ?? null })
      const response = await fetch(signed, {
        redirect: 'error',
        signal: signal === undefined ? deadline : AbortSignal.any([signal, deadline]),
      })
      if (response.status < 500 && response.status !== 429) return response
      const refusal = await this.refusal(response)
      if (isLast) throw this.#unreachable(refusal.message)
    } catch (error) {
      if (error instanceof SandglassError) throw error
      if (signal?.aborted === true)
        throw new SandglassError('aborted', 'the transfer was aborted', { cause: signal.reason })
      if (isLast || deadline.aborted) throw this.#unreachable(causeOf(error))
    }
    return undefined
  }

  #unreachable(reason: string): SandglassError {
    return new SandglassError('store_unreachable', `${this.name} does not answer: ${reason}`)
  }

  async #makeClient(): Promise<AwsClient> {
    const { region = '', accessKeyId, secretAccessKey, sessionToken } = this.#options
    const env = process.env
    const key = accessKeyId ?? env['AWS_ACCESS_KEY_ID']
    const secret = secretAccessKey ?? env['AWS_SECRET_ACCESS_KEY']
    const token = sessionToken ?? (accessKeyId === undefined ? env['AWS_SESSION_TOKEN'] : undefined)
    if (key === undefined || secret === undefined)
      throw new SandglassError(
        'store_unusable',
        `${this.name} needs credentials: pass accessKeyId and secretAccessKey, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`,
      )
    for (const [name, value] of Object.entries({ accessKeyId: key, secretAccessKey: secret, sessionToken: token }))
      if (value !== undefined && !HEADER_TEXT.test(value))
        throw new SandglassError(
          'store_unusable',
          `${this.name} needs credentials: ${name} is empty, or contains a space or a character that is not printable ASCII`,
        )
    const { AwsClient: Client } = await import('aws4fetch').catch((error: unknown) => {
      throw new SandglassError(
        'store_unusable',
        'a store in S3 needs the npm package aws4fetch: npm install aws4fetch',
        {
          cause: error,
        },
      )
    })
    return new Client({
      accessKeyId: key,
      secretAccessKey: secret,
      ...(token === undefined ? {} : { sessionToken: token }),
      service: 's3',
      region,
      retries: 0,
    })
  }
}

function hasMore({ username, password, search, hash }: URL): boolean {
  return [username, password, search, hash].some((part) => part !== '')
}

function amazon(region: string): string {
  return `https://s3.${region}.amazonaws.com`
}

/** `fetch` hides the reason in the cause. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error
  return truncate(messageOf(cause), 200)
}

function wrong(name: string, value: unknown, what: string): TypeError {
  return new TypeError(`storeInS3: ${name} ${formatValue(value)}: must be ${what}`)
}
