import { describe, expect, test } from 'vitest'
import { ModelError } from '../../../src/llm/index.ts'
import { ask, fine, GOT } from './chat-address.ts'
import { modelServer, reply } from '../../support/llm/model-server.ts'

describe('a temporary error is retried (OR-10)', () => {
  test('an invalid Retry-After, or a past date, causes no delay', async () => {
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

  test('until maxRetries is reached; then the last answer is the error', async () => {
    await using server = await modelServer(reply(503, 'busy'))
    await expect(ask({ url: server.url, maxRetries: 2 })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions answered 503: busy`),
    )
    expect(server.asked.length).toBe(3)
    await expect(ask({ url: server.url, maxRetries: 0 })).rejects.toThrow(ModelError)
    expect(server.asked.length).toBe(4)
  })

  test('but not after a Retry-After of more than a minute: that is reported at once', async () => {
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

  test('a port without a listener', async () => {
    const server = await modelServer(fine)
    await server[Symbol.asyncDispose]()
    await expect(ask({ url: server.url, maxRetries: 1 })).rejects.toThrow(
      /^http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions cannot be reached: fetch failed: .*ECONNREFUSED/,
    )
  })
})
