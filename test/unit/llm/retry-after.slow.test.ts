import { APICallError } from 'ai'
import { expect, test } from 'vitest'
import { callerOf, callModel } from '../../../src/llm/index.ts'
import { modelServer, reply } from '../../support/llm/model-server.ts'
import { ask, fine, GOT } from './chat-address.ts'

/* Waits that a provider requests (OR-10), in whole seconds of HTTP. */

test('429 after the seconds that Retry-After asks for', async () => {
  await using server = await modelServer(reply(429, 'slow down', { 'retry-after': '1' }), fine)
  expect(await ask({ url: server.url })).toEqual(GOT)
  const [first, second] = server.asked
  expect((second?.at ?? 0) - (first?.at ?? 0)).toBeGreaterThanOrEqual(995)
})

test('429 at the date that Retry-After names', async () => {
  // HTTP has whole seconds, so this is between one and two seconds away.
  const date = new Date(Math.ceil(Date.now() / 1000) * 1000 + 1000)
  await using server = await modelServer(reply(429, 'slow down', { 'retry-after': date.toUTCString() }), fine)
  expect(await ask({ url: server.url })).toEqual(GOT)
  expect(Date.now()).toBeGreaterThanOrEqual(date.getTime())
})

test('429 of a model of the AI SDK after the seconds that its header asks for', async () => {
  const refusal = new APICallError({
    message: 'slow down',
    url: 'https://models.example',
    requestBodyValues: {},
    statusCode: 429,
    responseHeaders: { 'retry-after': '1' },
  })
  const asked: number[] = []
  const doGenerate = async (): Promise<unknown> => {
    asked.push(performance.now())
    if (asked.length === 1) throw refusal
    return { content: [{ type: 'text', text: 'emit_result(1)' }] }
  }
  const model = { specificationVersion: 'v4', modelId: 'm', doGenerate }
  await callModel(callerOf(model), 'Hello', { signal: new AbortController().signal, timeoutMs: 10_000 })
  expect((asked[1] ?? 0) - (asked[0] ?? 0)).toBeGreaterThanOrEqual(995)
})
