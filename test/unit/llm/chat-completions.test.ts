import { describe, expect, test } from 'vitest'
import { chatCompletions } from '../../../src/llm/index.ts'
import { ask, fine, GOT } from './chat-address.ts'
import { ANSWER, modelServer, reply } from '../../support/llm/model-server.ts'

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

  test('is called without a key if there is none', async () => {
    await using server = await modelServer(fine)
    await ask({ url: server.url })
    expect(server.asked[0]?.headers.authorization).toBe(undefined)
  })

  test('may have its path or not, and keeps its query', async () => {
    await using server = await modelServer(fine)
    for (const end of ['', '/', '/chat/completions', '/chat/completions/', '?api-version=1']) {
      await ask({ url: `${server.url}${end}` })
    }
    expect(server.asked.map(({ path }) => path)).toEqual([
      ...Array.from({ length: 4 }, () => '/v1/chat/completions'),
      '/v1/chat/completions?api-version=1',
    ])
  })

  test.each<[string, unknown]>([
    ['a number', 5],
    ['null', null],
    ['an object', { text: 'emit_result(1)' }],
    ['lists of lists', [['emit_result(1)'], [[]]]],
  ])('has an empty text for content that is %s', async (_, content) => {
    await using server = await modelServer(reply(200, { ...ANSWER, choices: [{ message: { content } }] }))
    expect(await ask({ url: server.url })).toEqual({ ...GOT, text: '' })
  })

  test.each<[string, unknown]>([
    ['negative', -1],
    ['a text', '11'],
    ['a list', [11]],
    ['beyond every number', '1e999'],
  ])('has no usage where its numbers of tokens are %s', async (_, tokens) => {
    const usage = { prompt_tokens: tokens, completion_tokens: tokens, prompt_tokens_details: { cached_tokens: tokens } }
    await using server = await modelServer(
      reply(200, JSON.stringify({ ...ANSWER, usage }).replaceAll('"1e999"', '1e999')),
    )
    expect(await ask({ url: server.url })).toEqual({
      ...GOT,
      promptTokens: null,
      cachedPromptTokens: null,
      completionTokens: null,
    })
  })

  test('may answer in parts, without usage, and with a byte order mark', async () => {
    const content = [{ type: 'text', text: 'emit_' }, { type: 'image' }, { type: 'text', text: 'result(1)' }]
    await using server = await modelServer(
      reply(200, `\uFEFF${JSON.stringify({ choices: [{ message: { content } }] })}`),
    )
    expect(await ask({ url: server.url })).toEqual({
      ...GOT,
      promptTokens: null,
      cachedPromptTokens: null,
      completionTokens: null,
      model: null,
    })
  })

  test('may answer with an empty text', async () => {
    await using server = await modelServer(reply(200, { choices: [{ message: { content: null } }] }))
    expect((await ask({ url: server.url })).text).toBe('')
  })
})

describe('an invalid option is refused before anything is sent', () => {
  const good = { url: 'http://127.0.0.1:1/v1', model: 'm' }
  test.each([
    [{ url: 'api.openai.com' }, /url "api\.openai\.com" is not an http or https address$/],
    [{ url: 'file:///etc/passwd' }, /is not an http or https address$/],
    [{ url: undefined as unknown as string }, /is not an http or https address$/],
    [{ model: '' }, /model must be a name$/],
    [{ maxRetries: -1 }, /maxRetries must be a whole number of at least 0, not -1$/],
    [{ maxRetries: Number.NaN }, /maxRetries must be/],
    [{ firstPauseMs: Number.POSITIVE_INFINITY }, /firstPauseMs must be/],
  ])('%j', (wrong, message) => {
    expect(() => chatCompletions({ ...good, ...wrong })).toThrow(message)
  })

  test('and its secrets are not repeated', () => {
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
