import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { callModel, chatCompletions, type LLMCaller, ModelError } from '../../../src/llm/index.ts'
import { ask, fine } from './chat-address.ts'
import { flood, modelServer, reply } from '../../support/llm/model-server.ts'

const LARGE_IN_GZIP = gzipSync(Buffer.alloc(17 * 1024 * 1024, ' '), { level: 1 })

describe('a permanent error is reported at once (OR-08)', () => {
  test.each([400, 401, 404])('%i', async (status) => {
    await using server = await modelServer(reply(status, `no: ${'x'.repeat(1000)}`))
    await expect(ask({ url: `${server.url}?key=SECRET` })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered ${status}: no: ${'x'.repeat(496)}`),
    )
    expect(server.asked.length).toBe(1)
  })

  test.each([301, 302, 303, 307, 308])('a redirect (%i), which would carry the keys away', async (status) => {
    await using thief = await modelServer(fine)
    const headers = { location: `${thief.url}/take?key=SECRET` }
    await using server = await modelServer(reply(status, 'moved', headers))
    await expect(ask({ url: server.url, apiKey: 'sk-1', headers: { 'api-key': 'SECRET' } })).rejects.toThrow(
      new ModelError(
        `${server.url}/chat/completions answered ${status}, a redirect to ${thief.url}/take that is not followed: keys go to the given address only: moved`,
      ),
    )
    expect([server.asked.length, thief.asked.length]).toEqual([1, 0])
  })

  test('a port that fetch refuses', async () => {
    const problems: string[] = []
    const onProblem = (problem: string): void => void problems.push(problem)
    const model = chatCompletions({ url: 'http://127.0.0.1:1/v1', model: 'm', firstPauseMs: 1 })
    await expect(model('Hello', { signal: new AbortController().signal, onProblem })).rejects.toThrow(
      new ModelError('http://127.0.0.1:1/v1/chat/completions cannot be reached: fetch failed: bad port'),
    )
    expect(problems).toEqual([])
  })

  test.each(['ENOTFOUND', 'CERT_HAS_EXPIRED', 'DEPTH_ZERO_SELF_SIGNED_CERT'])('%s', async (code) => {
    const cause = Object.assign(new Error('it is so'), { code })
    using fetching = vi.spyOn(globalThis, 'fetch').mockRejectedValue(new TypeError('fetch failed', { cause }))
    await expect(ask({ url: 'http://127.0.0.1:9/v1' })).rejects.toThrow(/cannot be reached: fetch failed: it is so$/)
    expect(fetching).toHaveBeenCalledTimes(1)
  })

  test.each([
    ['no JSON', '<html>', 'did not answer with JSON: <html>'],
    ['nothing', '', 'did not answer with JSON: '],
    ['an error', '{"error":"x"}', 'answered without choices[0].message.content: {"error":"x"}'],
    ['no choice', '{"choices":[]}', 'answered without choices[0].message.content: {"choices":[]}'],
    ['null', 'null', 'answered without choices[0].message.content: null'],
  ])('%s', async (_, body, problem) => {
    await using server = await modelServer(reply(200, body))
    await expect(ask({ url: server.url })).rejects.toThrow(new ModelError(`${server.url}/chat/completions ${problem}`))
    expect(server.asked.length).toBe(1)
  })

  test('an answer of more than 16 MiB that is sent as a few kilobytes of gzip', async () => {
    await using server = await modelServer((response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(LARGE_IN_GZIP)
    })
    await expect(ask({ url: server.url })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered with more than 16777216 bytes`),
    )
  })

  test('an answer of more than 16 MiB, which is not read to its end', async () => {
    const endlessly = flood(200, 1024 * 1024)
    await using server = await modelServer(endlessly.reply)
    await expect(ask({ url: server.url })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered with more than 16777216 bytes`),
    )
    expect(endlessly.pieces()).toBeLessThan(200)
    expect(server.asked.length).toBe(1)
  })

  test('an endless or truncated error response, by its status and its first words', async () => {
    const endlessly = flood(400, 64 * 1024)
    await using endless = await modelServer(endlessly.reply)
    await expect(ask({ url: endless.url })).rejects.toThrow(
      new ModelError(`${endless.url}/chat/completions answered 400: ${'x'.repeat(500)}`),
    )
    expect(endlessly.pieces()).toBeLessThan(200)
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

  test('a timeout reports the error before it', async () => {
    await using server = await modelServer(reply(429, 'slow down', { 'retry-after': '30' }))
    const { promise: problem, resolve: onProblem } = Promise.withResolvers<void>()
    const model = chatCompletions({ url: server.url, model: 'm' })
    const caller: LLMCaller = (prompt, context) =>
      model(prompt, { ...context, onProblem: (text) => (context.onProblem?.(text), onProblem()) })
    // The first timer is that of the answer. It fires once there is an error to report.
    let timeOut = (): void => {}
    using timers = vi
      .spyOn(globalThis, 'setTimeout')
      .mockImplementationOnce(((onTime: () => void) => void (timeOut = onTime)) as unknown as typeof setTimeout)
    const asked = callModel(caller, 'Hello', { signal: new AbortController().signal, timeoutMs: 300 })
    expect(timers.mock.calls).toEqual([[expect.any(Function), 300]])
    await problem
    timeOut()
    await expect(asked).rejects.toThrow(
      new ModelError(
        `the model did not answer within 300 ms; the last problem: ${server.url}/chat/completions answered 429: slow down`,
      ),
    )
  })

  test('an abort of a direct call ends it, too', async () => {
    await using server = await modelServer(reply(429, '', { 'retry-after': '30' }))
    const left = new AbortController()
    const { promise: problem, resolve: onProblem } = Promise.withResolvers<string>()
    const asked = chatCompletions({ url: server.url, model: 'm' })('Hello', { signal: left.signal, onProblem })
    const failed = Promise.resolve(asked).catch((error: unknown) => error)
    await problem // so that there is an error to report
    left.abort()
    expect(await failed).toMatchObject({
      name: 'AbortError',
      message: `given up; the last problem: ${server.url}/chat/completions answered 429`,
      cause: left.signal.reason as unknown,
    })
  })
})
