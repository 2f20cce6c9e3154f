import { setImmediate as nextTurn } from 'node:timers/promises'
import { LineSplitter } from '../protocol/index.ts'
import { scanJson } from '../support/index.ts'

/** Maximum bytes of a message. */
export const MAX_MESSAGE_BYTES: number = 8 * 1024 * 1024
/** Messages that are passed to the client before the event loop gets a turn: it takes up to 0.15 ms for a small one. */
export const MESSAGES_AT_ONCE = 256
/** Maximum values and levels of a message: it takes some 50 ms to parse. */
const MAX_MESSAGE_PARTS = 262_144
const MAX_MESSAGE_DEPTH = 1000
/** Bytes at the beginning and at the end of an answer that are searched for its id. */
const ID_BYTES = 256
const INTERNAL_ERROR = -32_603
/** Maximum number of responses to requests of the server that are being sent. */
const MAX_PENDING_RESPONSES = 32
const MAX_REDIRECTS = 5
const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]
const DATA = /^data: ?/

/**
 * Returns the message if it is within the bounds, else an error response to its request.
 * @throws RangeError if it exceeds them and its request cannot be identified.
 */
export function boundMessage(message: Uint8Array): Uint8Array {
  const { parts, depth } = scanJson(message)
  if (parts <= MAX_MESSAGE_PARTS && depth <= MAX_MESSAGE_DEPTH) return message
  const why =
    depth > MAX_MESSAGE_DEPTH
      ? `the answer is nested deeper than ${MAX_MESSAGE_DEPTH} levels`
      : `the answer has more than ${MAX_MESSAGE_PARTS} values`
  const text = Buffer.from(message.buffer, message.byteOffset, message.byteLength)
  const ends = `${text.toString('latin1', 0, ID_BYTES)}\n${text.toString('latin1', Math.max(0, text.length - ID_BYTES))}`
  const id = /"id"\s{0,4}:\s{0,4}(\d{1,15})\b/.exec(ends)?.[1]
  if (id === undefined) throw new RangeError(why)
  const error = { code: INTERNAL_ERROR, message: why }
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: Number(id), error }))
}

/** A function that waits for a turn of the event loop at every `count`-th call. */
export function pauseAfter(count: number): () => Promise<void> | undefined {
  let calls = 0
  return () => {
    calls += 1
    return calls % count === 0 ? nextTurn() : undefined
  }
}

/**
 * `fetch` with bounds on the messages of an MCP server, before the client parses them.
 * @param onExcess called for a stream of events that exceeds them: the client would wait for the rest.
 */
export function boundedFetch(onExcess: () => void): (url: string | URL, init?: RequestInit) => Promise<Response> {
  let pendingResponses = 0
  return async (url, init) => {
    const isPending = isResponse(init)
    if (isPending && pendingResponses >= MAX_PENDING_RESPONSES)
      throw new RangeError('the MCP server sends requests faster than it reads the responses')
    if (isPending) pendingResponses += 1
    const response = await fetchSameOrigin(url, init).finally(() => (pendingResponses -= isPending ? 1 : 0))
    if (response.body === null) return response
    const type = response.headers.get('content-type') ?? ''
    if (type.includes('text/event-stream')) {
      return new Response(response.body.pipeThrough(boundEvents(onExcess)), response)
    }
    const bytes = await readBounded(response.body)
    return new Response(Buffer.from(type.includes('json') ? boundMessage(bytes) : bytes), response)
  }
}

/**
 * True for a response of the client to a request of the server. In requests and notifications, the client writes `method` first.
 */
function isResponse(init: RequestInit | undefined): boolean {
  const body = init?.method === 'POST' ? init.body : undefined
  return typeof body === 'string' && !body.startsWith('{"method"')
}

/**
 * Follows redirects within the same origin only, because the headers may hold keys.
 * @throws Error naming the address of another origin.
 */
async function fetchSameOrigin(url: string | URL, init?: RequestInit): Promise<Response> {
  let address = new URL(url)
  for (let hop = 0; hop < MAX_REDIRECTS; hop += 1) {
    const response = await fetch(address, { ...init, redirect: 'manual' })
    const location = response.headers.get('location')
    if (!REDIRECTS.includes(response.status) || location === null) return response
    await response.body?.cancel()
    const next = new URL(location, address)
    const isSame = next.origin === address.origin && (init?.method !== 'POST' || response.status >= 307)
    if (!isSame)
      throw new Error(`the MCP server redirects to ${next.origin}${next.pathname}; use that address if you trust it`)
    address = next
  }
  throw new Error(`the MCP server redirects more than ${MAX_REDIRECTS} times`)
}

async function readBounded(body: ReadableStream<Uint8Array>): Promise<Uint8Array> {
  // One buffer that grows: a list of chunks of one byte would take many times their size.
  let bytes = Buffer.allocUnsafe(FIRST_BYTES)
  let length = 0
  for await (const chunk of body) {
    if (length + chunk.length > MAX_MESSAGE_BYTES) {
      throw new RangeError(`the answer has more than ${MAX_MESSAGE_BYTES} bytes`)
    }
    if (length + chunk.length > bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(MAX_MESSAGE_BYTES, Math.max(2 * bytes.length, length + chunk.length)))
      bytes.copy(larger, 0, 0, length)
      bytes = larger
    }
    bytes.set(chunk, length)
    length += chunk.length
  }
  return bytes.subarray(0, length)
}

/** Passes on complete lines of a stream of events; fails if an event exceeds the bounds of a message. */
function boundEvents(onExcess: () => void): TransformStream<Uint8Array, Uint8Array> {
  const lines = new LineSplitter(MAX_MESSAGE_BYTES)
  const normalizeLineEnds = createLineEndNormalizer()
  const pause = pauseAfter(MESSAGES_AT_ONCE)
  let isFirst = true
  // Counts of the current event, which may have several lines of data.
  let bytes = 0
  let parts = 0
  const boundLine = (line: Buffer): Buffer => {
    if (line.length === 0) {
      bytes = parts = 0
      return line
    }
    bytes += line.length
    const field = DATA.exec(line.toString('latin1', 0, 6))?.[0]
    if (field === undefined) return line
    const data = line.subarray(field.length)
    const bounded = bytes === line.length ? boundMessage(data) : data
    parts += scanJson(bounded).parts
    if (bytes > MAX_MESSAGE_BYTES || parts > MAX_MESSAGE_PARTS)
      throw new RangeError('an event exceeds the limits of a message')
    return bounded === data ? line : Buffer.concat([Buffer.from(field), bounded])
  }
  return new TransformStream({
    async transform(chunk, controller) {
      try {
        for (const each of lines.push(normalizeLineEnds(chunk))) {
          const line =
            isFirst && each.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK) ? each.subarray(3) : each
          isFirst = false
          controller.enqueue(Buffer.concat([boundLine(line), NEWLINE]))
          await pause()
        }
      } catch (error) {
        controller.error(error)
        onExcess()
      }
    },
  })
}

/**
 * Replaces every line end by a line feed. In a stream of events, a carriage return also ends a line, alone or before a line feed;
 * the client accepts both.
 */
function createLineEndNormalizer(): (chunk: Uint8Array) => Uint8Array {
  let endsInReturn = false
  return (chunk) => {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
    const skipsFeed = endsInReturn && bytes[0] === FEED
    if (bytes.length > 0) endsInReturn = bytes.at(-1) === RETURN
    if (!bytes.includes(RETURN)) return skipsFeed ? bytes.subarray(1) : bytes
    const plain = Buffer.allocUnsafe(bytes.length)
    let length = 0
    for (let at = skipsFeed ? 1 : 0; at < bytes.length; at += 1) {
      const byte = bytes[at] as number
      if (byte === FEED && at > 0 && bytes[at - 1] === RETURN) continue
      plain[length] = byte === RETURN ? FEED : byte
      length += 1
    }
    return plain.subarray(0, length)
  }
}

const NEWLINE = Buffer.from('\n')
const BYTE_ORDER_MARK = Buffer.from('\uFEFF')
const [FEED, RETURN] = [0x0a, 0x0d]
const FIRST_BYTES = 64 * 1024
