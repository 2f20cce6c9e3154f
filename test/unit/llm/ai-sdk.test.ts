import { APICallError } from 'ai'
import { MockLanguageModelV3, MockLanguageModelV4 } from 'ai/test'
import { describe, expect, test } from 'vitest'
import { callerOf, callModel, type ModelAnswer, ModelError, type ModelInput } from '../../../src/llm/index.ts'

type APICallErrorFields = ConstructorParameters<typeof APICallError>[0]

const aNumber: unknown = expect.any(Number)
const ask = (model: ModelInput): Promise<ModelAnswer> =>
  callModel(callerOf(model), 'Hello', { signal: new AbortController().signal, timeoutMs: 10_000 })

const finishReason = { unified: 'stop', raw: undefined } as const
const usage = {
  inputTokens: { total: 7, noCache: 7, cacheRead: 5, cacheWrite: undefined },
  outputTokens: { total: 3, text: 3, reasoning: undefined },
}
const GOT = { promptTokens: 7, cachedPromptTokens: 5, completionTokens: 3, latencyMs: aNumber }

test("the AI SDK's own mock models are models (OR-10)", async () => {
  const content = [
    { type: 'reasoning' as const, text: 'not this' },
    { type: 'text' as const, text: 'emit_' },
    { type: 'text' as const, text: 'result(1)' },
  ]
  const answer = { content, finishReason, usage, warnings: [], response: { modelId: 'mock-2026' } }
  for (const model of [
    new MockLanguageModelV3({ modelId: 'mock', doGenerate: answer }),
    new MockLanguageModelV4({ modelId: 'mock', doGenerate: answer }),
  ]) {
    expect(await ask(model)).toEqual({ ...GOT, text: 'emit_result(1)', model: 'mock-2026' })
    expect(model.doGenerateCalls.map(({ prompt }) => prompt)).toEqual([
      [{ role: 'user', content: [{ type: 'text', text: 'Hello' }] }],
    ])
  }
})

test("version 2 has plain counts, and a result without a response has the model's name", async () => {
  const model = {
    specificationVersion: 'v2',
    modelId: 'two',
    doGenerate: async () => ({
      content: [{ type: 'text', text: 'x' }],
      usage: { inputTokens: 7, cachedInputTokens: 5, outputTokens: 3, totalTokens: 10 },
    }),
  }
  expect(await ask(model)).toEqual({ ...GOT, text: 'x', model: 'two' })
})

test('a model that is a callable object is recognised', async () => {
  const model = Object.assign(() => Promise.resolve('not this'), {
    specificationVersion: 'v3',
    modelId: 'three',
    doGenerate: async () => ({ content: [{ type: 'text', text: 'this' }] }),
  })
  expect((await ask(model)).text).toBe('this')
})

test('it gets the signal of the run', async () => {
  const left = new AbortController()
  let given: AbortSignal | undefined
  const model = new MockLanguageModelV4({
    doGenerate: ({ abortSignal }) => {
      given = abortSignal
      return new Promise(() => {})
    },
  })
  const asked = callModel(callerOf(model), 'Hello', { signal: left.signal, timeoutMs: 10_000 })
  left.abort(new Error('left'))
  await expect(asked).rejects.toThrow('left')
  expect(given?.aborted).toBe(true)
})

describe('a temporary error is retried, as with any other address (OR-10)', () => {
  const url = 'http://provider/v1'
  const refusal = (statusCode: number | undefined, fields: Partial<APICallErrorFields> = {}): APICallError =>
    new APICallError({
      message: 'slow down',
      url,
      requestBodyValues: {},
      ...(statusCode === undefined ? {} : { statusCode }),
      ...fields,
    })
  /** A model that fails with these errors in order, and then answers. */
  const failing = (...errors: readonly Error[]): { readonly model: ModelInput; readonly asked: () => number } => {
    let count = 0
    const doGenerate = async (): Promise<unknown> => {
      const error = errors[count]
      count += 1
      if (error !== undefined) throw error
      return { content: [{ type: 'text', text: 'emit_result(1)' }] }
    }
    return { model: { specificationVersion: 'v4', modelId: 'm', doGenerate }, asked: () => count }
  }
  const atOnce = { responseHeaders: { 'retry-after': '0' } }

  test('429, 5xx, and a connection that failed', async () => {
    const { model, asked } = failing(
      refusal(429, atOnce),
      refusal(503, atOnce),
      refusal(undefined, { ...atOnce, isRetryable: true }),
    )
    expect((await ask(model)).text).toBe('emit_result(1)')
    expect(asked()).toBe(4)
  })

  test('four times; then it is reported', async () => {
    const { model, asked } = failing(...Array.from({ length: 9 }, () => refusal(503, atOnce)))
    await expect(ask(model)).rejects.toThrow(new ModelError('the model of the AI SDK answered 503: slow down'))
    expect(asked()).toBe(5)
  })

  test('but neither a permanent one nor one that the provider marks as final', async () => {
    for (const error of [refusal(401), refusal(429, { isRetryable: false }), new Error('no key')]) {
      const { model, asked } = failing(error)
      await expect(ask(model)).rejects.toMatchObject({ message: `the model failed: ${error.message}`, cause: error })
      expect(asked()).toBe(1)
    }
  })

  test('nor one that asks for a wait of more than a minute', async () => {
    const { model, asked } = failing(refusal(429, { responseHeaders: { 'retry-after': '3600' } }))
    await expect(ask(model)).rejects.toThrow(
      new ModelError('the model of the AI SDK answered 429 and asks to wait 3600 s: slow down'),
    )
    expect(asked()).toBe(1)
  })
})

test('reports a model that answers nothing or fails', async () => {
  const of = (doGenerate: () => Promise<unknown>): ModelInput => ({
    specificationVersion: 'v3',
    modelId: 'm',
    doGenerate,
  })
  await expect(ask(of(async () => undefined))).rejects.toThrow(
    new ModelError('the model of the AI SDK returned no answer'),
  )
  await expect(ask(of(() => Promise.reject(new Error('no key'))))).rejects.toThrow(
    new ModelError('the model failed: no key'),
  )
  expect(await ask(of(async () => ({ content: [{ type: 'tool-call' }] })))).toMatchObject({
    text: '',
    promptTokens: null,
    cachedPromptTokens: null,
    completionTokens: null,
  })
})
