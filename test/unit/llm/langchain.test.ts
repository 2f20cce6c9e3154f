import { AIMessage } from '@langchain/core/messages'
import { FakeListChatModel, FakeStreamingChatModel } from '@langchain/core/utils/testing'
import { expect, test } from 'vitest'
import { callerOf, callModel, type ModelAnswer, ModelError, type ModelInput } from '../../../src/llm/index.ts'

const aNumber: unknown = expect.any(Number)
const ask = (model: ModelInput): Promise<ModelAnswer> =>
  callModel(callerOf(model), 'Hello', { signal: new AbortController().signal, timeoutMs: 10_000 })

test("LangChain's own fake chat models are models (OR-10)", async () => {
  const model = new FakeListChatModel({ responses: ['emit_result(1)', 'emit_result(2)'] })
  expect(await ask(model)).toEqual({
    text: 'emit_result(1)',
    promptTokens: null,
    cachedPromptTokens: null,
    completionTokens: null,
    latencyMs: aNumber,
    model: null,
  })
  expect((await ask(model)).text).toBe('emit_result(2)')
})

test('usage and the name of the model are read', async () => {
  const message = Object.assign(new AIMessage('emit_result(1)'), {
    usage_metadata: { input_tokens: 7, output_tokens: 3, total_tokens: 10, input_token_details: { cache_read: 5 } },
    response_metadata: { model_name: 'chain-1' },
  })
  expect(await ask({ invoke: async () => message })).toEqual({
    text: 'emit_result(1)',
    promptTokens: 7,
    cachedPromptTokens: 5,
    completionTokens: 3,
    latencyMs: aNumber,
    model: 'chain-1',
  })
})

test('the text of an answer in parts is used', async () => {
  const content = [
    { type: 'reasoning', reasoning: 'no' },
    { type: 'text', text: 'emit_' },
    { type: 'text', text: 'result(1)' },
  ]
  expect((await ask({ invoke: async () => new AIMessage({ content }) })).text).toBe('emit_result(1)')
})

test('a model may answer with a plain text or be a callable object', async () => {
  expect((await ask({ invoke: async (prompt) => `re: ${prompt}` })).text).toBe('re: Hello')
  const callable = Object.assign(() => Promise.resolve('not this'), { invoke: async () => ({ content: 'this' }) })
  expect((await ask(callable)).text).toBe('this')
})

test('its failure is reported', async () => {
  await expect(ask(new FakeStreamingChatModel({ thrownErrorString: 'no key' }))).rejects.toThrow(
    new ModelError('the model failed: no key'),
  )
  expect((await ask({ invoke: async () => undefined })).text).toBe('')
})
