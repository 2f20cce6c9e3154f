import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import {
  callModel,
  chatCompletions,
  type ChatCompletionsOptions,
  type ModelAnswer,
  ModelError,
} from '../../src/llm/index.ts'
import { ANSWER, modelServer, reply, type Reply } from './model-server.ts'

const aNumber: unknown = expect.any(Number)
const ask = (
  options: Partial<ChatCompletionsOptions> & { readonly url: string },
  signal: AbortSignal = new AbortController().signal,
): Promise<ModelAnswer> =>
  callModel(chatCompletions({ model: 'coder', firstPauseMs: 1, ...options }), 'Hello', { signal, timeoutMs: 30_000 })

const GOT = {
  text: 'emit_result(1)',
  promptTokens: 11,
  completionTokens: 4,
  latencyMs: aNumber,
  model: 'coder-1-2026',
}
const fine = reply(200, ANSWER)

describe('an OpenAI-compatible address (OR-10)', () => {
  test('is sent the prompt and the key, and its usage is read', async () => {
    await using server = await modelServer(fine)
    const options = { apiKey: 'sk-1', body: { temperature: 0, model: 'not this' }, headers: { 'X-Team': 'a' } }
    expect(await ask({ url: server.url, ...options })).toEqual(GOT)
    expect(server.asked).toMatchObject([
      {
        method: 'POST',
        path: '/v1/chat/completions',
        headers: { authorization: 'Bearer sk-1', 'content-type': 'application/json', 'x-team': 'a' },
        body: { temperature: 0, model: 'coder', messages: [{ role: 'user', content: 'Hello' }] },
      },
    ])
  })

  test('is asked without a key where there is none', async () => {
    await using server = await modelServer(fine)
    await ask({ url: server.url })
    expect(server.asked[0]?.headers.authorization).toBe(undefined)
  })

  test('may be written with or without its end, and keeps its query', async () => {
    await using server = await modelServer(fine)
    for (const end of ['', '/', '/chat/completions', '/chat/completions/', '?api-version=1']) {
      await ask({ url: `${server.url}${end}` })
    }
    expect(server.asked.map(({ path }) => path)).toEqual([
      ...Array.from({ length: 4 }, () => '/v1/chat/completions'),
      '/v1/chat/completions?api-version=1',
    ])
  })

  test('may answer in parts, without usage, and with a byte order mark', async () => {
    const content = [{ type: 'text', text: 'emit_' }, { type: 'image' }, { type: 'text', text: 'result(1)' }]
    await using server = await modelServer(
      reply(200, `\uFEFF${JSON.stringify({ choices: [{ message: { content } }] })}`),
    )
    expect(await ask({ url: server.url })).toEqual({ ...GOT, promptTokens: null, completionTokens: null, model: null })
  })

  test('may have nothing to say', async () => {
    await using server = await modelServer(reply(200, { choices: [{ message: { content: null } }] }))
    expect((await ask({ url: server.url })).text).toBe('')
  })
})

describe('what passes is tried again (OR-10)', () => {
  test('429 after the seconds that Retry-After asks for', async () => {
    await using server = await modelServer(reply(429, 'slow down', { 'retry-after': '1' }), fine)
    expect(await ask({ url: server.url })).toEqual(GOT)
    const [first, second] = server.asked
    expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(995)
  })

  test('429 at the date that Retry-After names', async () => {
    // HTTP has whole seconds: this is between one and two of them away.
    const date = new Date(Math.ceil(Date.now() / 1000) * 1000 + 1000)
    await using server = await modelServer(reply(429, 'slow down', { 'retry-after': date.toUTCString() }), fine)
    expect(await ask({ url: server.url })).toEqual(GOT)
    expect(Date.now()).toBeGreaterThanOrEqual(date.getTime())
  })

  test('a Retry-After that says nothing, or a date that is over, does not hold it up', async () => {
    await using server = await modelServer(
      reply(429, '', { 'retry-after': 'soon' }),
      reply(503, '', { 'retry-after': 'Thu, 01 Jan 2026 00:00:00 GMT' }),
      reply(429, '', { 'retry-after': '-5' }),
      fine,
    )
    expect(await ask({ url: server.url })).toEqual(GOT)
  })

  test('500, and a connection that breaks in the middle of an answer', async () => {
    await using server = await modelServer(
      reply(500, 'oh'),
      (response) => response.destroy(),
      (response) => {
        response.writeHead(200, { 'content-length': '1000' }).write('{"choices"')
        setImmediate(() => response.destroy())
      },
      fine,
    )
    expect(await ask({ url: server.url })).toEqual(GOT)
    expect(server.asked.length).toBe(4)
  })

  test('after pauses that double', async () => {
    await using server = await modelServer(reply(500, 'oh'), reply(500, 'oh'), reply(500, 'oh'), fine)
    await ask({ url: server.url, firstPauseMs: 40 })
    const at = server.asked.map((asked) => asked.at)
    const pauses = at.slice(1).map((time, index) => time - (at[index] ?? 0))
    expect(pauses.map((pause, index) => pause >= 40 * 2 ** index - 2)).toEqual([true, true, true])
  })

  test('until maxRetries is spent; then the last answer is the error', async () => {
    await using server = await modelServer(reply(503, 'busy'))
    await expect(ask({ url: server.url, maxRetries: 2 })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered 503: busy`),
    )
    expect(server.asked.length).toBe(3)
    await expect(ask({ url: server.url, maxRetries: 0 })).rejects.toThrow(ModelError)
    expect(server.asked.length).toBe(4)
  })

  test('but not where more than a minute is asked for: that is told at once', async () => {
    const date = new Date(Date.now() + 7200_000).toUTCString()
    for (const [asked, seconds] of [
      ['3600', '3600'],
      ['60.5', '61'],
      [date, '7[12]\\d\\d'],
    ] as const) {
      await using server = await modelServer(reply(429, 'slow down', { 'retry-after': asked }), fine)
      await expect(ask({ url: server.url })).rejects.toThrow(
        new RegExp(`^${server.url}/chat/completions answered 429 and asks to wait ${seconds} s: slow down$`),
      )
      expect(server.asked.length).toBe(1)
    }
  })

  test('a port where nobody listens', async () => {
    const server = await modelServer(fine)
    await server[Symbol.asyncDispose]()
    await expect(ask({ url: server.url, maxRetries: 1 })).rejects.toThrow(
      /^http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions cannot be reached: fetch failed: .*ECONNREFUSED/,
    )
  })
})

describe('what does not pass is told at once (OR-08)', () => {
  test.each([400, 401, 404])('%i', async (status) => {
    await using server = await modelServer(reply(status, `no: ${'x'.repeat(1000)}`))
    await expect(ask({ url: `${server.url}?key=SECRET` })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered ${status}: no: ${'x'.repeat(496)}`),
    )
    expect(server.asked.length).toBe(1)
  })

  test.each([
    ['no JSON', '<html>', 'answered no JSON: <html>'],
    ['nothing', '', 'answered no JSON: '],
    ['an error', '{"error":"x"}', 'answered without choices[0].message.content: {"error":"x"}'],
    ['no choice', '{"choices":[]}', 'answered without choices[0].message.content: {"choices":[]}'],
    ['null', 'null', 'answered without choices[0].message.content: null'],
  ])('%s', async (_, body, problem) => {
    await using server = await modelServer(reply(200, body))
    await expect(ask({ url: server.url })).rejects.toThrow(new ModelError(`${server.url}/chat/completions ${problem}`))
    expect(server.asked.length).toBe(1)
  })

  test('an answer of more than 16 MiB, without being read to its end', async () => {
    let sent = 0
    await using server = await modelServer((response) => {
      const more = (): void => {
        while (!response.destroyed && sent < 1024) {
          sent += 1
          if (!response.write(Buffer.alloc(1024 * 1024, 'x'))) {
            response.once('drain', more)
            return
          }
        }
      }
      response.writeHead(200)
      more()
    })
    await expect(ask({ url: server.url })).rejects.toThrow(new ModelError('the answer has more than 16777216 bytes'))
    expect(sent).toBeLessThan(200)
    expect(server.asked.length).toBe(1)
  })

  test('a refusal that has no end, or breaks off, by its status and its first words', async () => {
    let sent = 0
    await using endless = await modelServer((response) => {
      const more = (): void => {
        while (!response.destroyed && sent < 1024) {
          sent += 1
          if (!response.write(Buffer.alloc(64 * 1024, 'x'))) {
            response.once('drain', more)
            return
          }
        }
      }
      response.writeHead(400)
      more()
    })
    await expect(ask({ url: endless.url })).rejects.toThrow(
      new ModelError(`${endless.url}/chat/completions answered 400: ${'x'.repeat(500)}`),
    )
    expect(sent).toBeLessThan(200)
    await using broken = await modelServer((response) => {
      response.writeHead(404, { 'content-length': '1000' }).write('no such')
      setImmediate(() => response.destroy())
    })
    await expect(ask({ url: broken.url })).rejects.toThrow(/\/chat\/completions answered 404(: no such)?$/)
  })

  test('an abort during the pause, and during the answer', async () => {
    for (const slow of [reply(429, '', { 'retry-after': '30' }), () => undefined]) {
      await using server = await modelServer(slow)
      const left = new AbortController()
      const asked = ask({ url: server.url }, left.signal)
      const failed = asked.catch((error: unknown) => error)
      while (server.asked.length === 0) await sleep(5)
      left.abort(new Error('left'))
      expect(await failed).toEqual(new Error('left'))
      expect(server.asked.length).toBe(1)
    }
  })

  test('a time that is over tells what went wrong before', async () => {
    await using server = await modelServer(reply(429, 'slow down', { 'retry-after': '30' }))
    const asked = callModel(chatCompletions({ url: server.url, model: 'm' }), 'Hello', {
      signal: new AbortController().signal,
      timeoutMs: 300,
    })
    await expect(asked).rejects.toThrow(
      new ModelError(
        `the model did not answer within 300 ms; the last problem: ${server.url}/chat/completions answered 429: slow down`,
      ),
    )
  })

  test('called by itself, an abort ends it, too', async () => {
    await using server = await modelServer(reply(429, '', { 'retry-after': '30' }))
    const left = new AbortController()
    const asked = chatCompletions({ url: server.url, model: 'm' })('Hello', { signal: left.signal })
    const failed = Promise.resolve(asked).catch((error: unknown) => error)
    while (server.asked.length === 0) await sleep(5)
    left.abort()
    expect(await failed).toMatchObject({
      name: 'AbortError',
      message: `given up; the last problem: ${server.url}/chat/completions answered 429`,
      cause: left.signal.reason as unknown,
    })
  })
})

describe('an option that cannot be is refused before anything is sent', () => {
  const good = { url: 'http://127.0.0.1:1/v1', model: 'm' }
  test.each([
    [{ url: 'api.openai.com' }, /url "api\.openai\.com" is no http or https address$/],
    [{ url: 'file:///etc/passwd' }, /is no http or https address$/],
    [{ url: undefined as unknown as string }, /is no http or https address$/],
    [{ model: '' }, /model must be a name$/],
    [{ maxRetries: -1 }, /maxRetries must be a whole number of at least 0$/],
    [{ maxRetries: Number.NaN }, /maxRetries must be/],
    [{ firstPauseMs: Number.POSITIVE_INFINITY }, /firstPauseMs must be/],
  ])('%j', (wrong, message) => {
    expect(() => chatCompletions({ ...good, ...wrong })).toThrow(message)
  })

  test('and what is secret in it is not repeated', () => {
    for (const wrong of [
      { apiKey: 'SECRET\nx' },
      { headers: { a: 'SECRET\u0000' } },
      { url: 'https://me:SECRET@x/v1' },
    ]) {
      let thrown: unknown
      try {
        chatCompletions({ ...good, ...wrong })
      } catch (error) {
        thrown = error
      }
      expect(thrown).toBeInstanceOf(TypeError)
      expect(String(thrown)).not.toContain('SECRET')
    }
  })
})

describe('what is secret does not come back in an error', () => {
  const KEY = 'sk-live-0123456789'
  const options = {
    apiKey: KEY,
    headers: { 'X-Proxy': 'Basic cHJveHk6cGFzcw==', Cookie: 'team-cookie' },
  }
  const echo =
    (status: number, before: string): Reply =>
    (response) => {
      const { authorization, cookie, ...more } = response.req.headers
      response.writeHead(status).end(`${before}${authorization}, ${String(more['x-proxy'])}, ${cookie}`)
    }
  const WANT = 'Bearer [redacted:apiKey], [redacted:X-Proxy], [redacted:Cookie]'

  test('that quotes the headers of the request', async () => {
    await using server = await modelServer(echo(401, 'not you: '))
    await expect(ask({ url: server.url, ...options })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered 401: not you: ${WANT}`),
    )
  })

  test('that quotes an answer which is none', async () => {
    await using server = await modelServer(echo(200, ''))
    await expect(ask({ url: server.url, ...options })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered no JSON: ${WANT}`),
    )
  })

  test('where a scheme stands before it, or the query of the address holds it', async () => {
    await using server = await modelServer(reply(400, `a=cHJveHk6cGFzcw== b=query-key ${JSON.stringify(KEY)}`))
    await expect(ask({ ...options, url: `${server.url}?key=query-key` })).rejects.toThrow(
      new ModelError(
        `${server.url}/chat/completions answered 400: a=[redacted:X-Proxy.credentials] b=[redacted:query.key] "[redacted:apiKey]"`,
      ),
    )
  })

  test('where two of them have one name', async () => {
    await using server = await modelServer(reply(400, 'one-key two-key own-key head-key'))
    const two = { apiKey: 'own-key', headers: { apiKey: 'head-key' } }
    await expect(ask({ ...two, url: `${server.url}?k=one-key&k=two-key` })).rejects.toThrow(
      new ModelError(
        `${server.url}/chat/completions answered 400: [redacted:query.k] [redacted:query.k#2] [redacted:apiKey] [redacted:apiKey#2]`,
      ),
    )
  })

  test('where the text is cut within it', async () => {
    for (const length of [495, 1020]) {
      await using server = await modelServer(reply(400, `${'x'.repeat(length - 5)}${KEY}`))
      await expect(ask({ url: server.url, ...options })).rejects.not.toThrow(/sk-l/)
    }
  })

  test('nor a password in an address that is refused', () => {
    for (const url of ['ftp://me:SECRET@x/v1', 'https://me:SECRET@[x/v1', 'ftp://x/v1?key=SECRET']) {
      expect(() => chatCompletions({ url, model: 'm' })).toThrow(
        /^(?!.*SECRET)chatCompletions: url .* is no http or https/,
      )
    }
  })
})
