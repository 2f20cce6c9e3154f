import { describe, expect, test } from 'vitest'
import { chatCompletions, ModelError } from '../../../src/llm/index.ts'
import { ask } from './chat-address.ts'
import { modelServer, reply, type Reply } from '../../support/llm/model-server.ts'

describe('an error does not contain a secret', () => {
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

  test('that quotes an invalid answer', async () => {
    await using server = await modelServer(echo(200, ''))
    await expect(ask({ url: server.url, ...options })).rejects.toThrow(
      new ModelError(`${server.url}/chat/completions did not answer with JSON: ${WANT}`),
    )
  })

  test('with a scheme before it, or in the query of the address', async () => {
    await using server = await modelServer(reply(400, `a=cHJveHk6cGFzcw== b=query-key ${JSON.stringify(KEY)}`))
    await expect(ask({ ...options, url: `${server.url}?key=query-key` })).rejects.toThrow(
      new ModelError(
        `${server.url}/chat/completions answered 400: a=[redacted:X-Proxy.credentials] b=[redacted:query.key] "[redacted:apiKey]"`,
      ),
    )
  })

  test('if two of them have one name', async () => {
    await using server = await modelServer(reply(400, 'one-key two-key own-key head-key'))
    const two = { apiKey: 'own-key', headers: { apiKey: 'head-key' } }
    await expect(ask({ ...two, url: `${server.url}?k=one-key&k=two-key` })).rejects.toThrow(
      new ModelError(
        `${server.url}/chat/completions answered 400: [redacted:query.k] [redacted:query.k#2] [redacted:apiKey] [redacted:apiKey#2]`,
      ),
    )
  })

  test('if the text is cut within it', async () => {
    for (const length of [495, 1020]) {
      await using server = await modelServer(reply(400, `${'x'.repeat(length - 5)}${KEY}`))
      await expect(ask({ url: server.url, ...options })).rejects.not.toThrow(/sk-l/)
    }
  })

  test('nor a password in an address that is refused', () => {
    for (const url of ['ftp://me:SECRET@x/v1', 'https://me:SECRET@[x/v1', 'ftp://x/v1?key=SECRET']) {
      expect(() => chatCompletions({ url, model: 'm' })).toThrow(
        /^(?!.*SECRET)chatCompletions: url .* is not an http or https/,
      )
    }
  })
})
