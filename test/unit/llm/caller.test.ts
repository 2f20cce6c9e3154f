import { getEventListeners } from 'node:events'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { callerOf, callModel, type LLMCaller, ModelError, type ModelInput } from '../../../src/llm/index.ts'

const aNumber: unknown = expect.any(Number)
const rejectingWithText: LLMCaller = async () => {
  // oxlint-disable-next-line only-throw-error
  throw 'a text'
}
const never: LLMCaller = () => new Promise(() => {})
const ask = (
  caller: LLMCaller,
  { signal = new AbortController().signal, timeoutMs = 10_000 } = {},
): ReturnType<typeof callModel> => callModel(caller, 'the prompt', { signal, timeoutMs })

afterEach(() => {
  vi.useRealTimers()
})

describe('the value of a caller (OR-01, OR-10)', () => {
  test('is an answer with its metadata', async () => {
    const caller: LLMCaller = async (prompt) => ({
      text: `re: ${prompt}`,
      promptTokens: 3,
      completionTokens: 5,
      latencyMs: 12.3456,
      model: 'm',
    })
    expect(await ask(caller)).toEqual({
      text: 're: the prompt',
      promptTokens: 3,
      cachedPromptTokens: null,
      completionTokens: 5,
      latencyMs: 12.346,
      model: 'm',
    })
  })

  test('may be a string, whose time is measured', async () => {
    const answer = await ask(async () => 'text')
    expect(answer).toEqual({
      text: 'text',
      promptTokens: null,
      cachedPromptTokens: null,
      completionTokens: null,
      latencyMs: aNumber,
      model: null,
    })
    expect(answer.latencyMs).toBeGreaterThanOrEqual(0)
  })

  test('may be an empty text', async () => {
    expect((await ask(async () => '')).text).toBe('')
  })

  test('loses invalid counts and names', async () => {
    const odd = { text: 'x', promptTokens: Number.NaN, completionTokens: -1, latencyMs: '5', model: 5 }
    const caller = (async () => odd) as unknown as LLMCaller
    expect(await ask(caller)).toEqual({
      text: 'x',
      promptTokens: null,
      cachedPromptTokens: null,
      completionTokens: null,
      latencyMs: aNumber,
      model: null,
    })
  })

  test.each([[undefined], [null], [5], [{}], [{ text: 5 }], [{ text: null }], [['x']], [() => 'x']])(
    '%j is not an answer',
    async (given) => {
      const caller = (async () => given) as unknown as LLMCaller
      await expect(ask(caller)).rejects.toThrow(
        new ModelError('the model returned no text: a caller must resolve to { text } or to a string'),
      )
    },
  )
})

describe('a caller that throws (OR-08)', () => {
  const throwing = (...errors: readonly Error[]): { readonly caller: LLMCaller; readonly asked: () => number } => {
    let count = 0
    const caller: LLMCaller = async () => {
      const error = errors[count]
      count += 1
      if (error !== undefined) throw error
      return 'x'
    }
    return { caller, asked: () => count }
  }

  test('is called once more', async () => {
    const { caller, asked } = throwing(new Error('reset'))
    expect((await ask(caller)).text).toBe('x')
    expect(asked()).toBe(2)
  })

  test('twice is not called a third time, and the second error counts', async () => {
    const { caller, asked } = throwing(new Error('a'), new Error('b'), new Error('c'))
    await expect(ask(caller)).rejects.toThrow(new ModelError('the model failed: b'))
    expect(asked()).toBe(2)
  })

  test('a ModelError is not called again', async () => {
    const { caller, asked } = throwing(new ModelError('no such model'))
    await expect(ask(caller)).rejects.toThrow(new ModelError('no such model'))
    expect(asked()).toBe(1)
  })

  test('is not called again after the cancellation', async () => {
    const { caller, asked } = throwing(new Error('a'))
    const controller = new AbortController()
    const answer = ask(caller, { signal: controller.signal })
    setImmediate(() => controller.abort(new Error('stop')))
    await expect(answer).rejects.toThrow('stop')
    expect(asked()).toBe(1)
  })
})

describe('a caller that does not answer (OR-08)', () => {
  test('in time is abandoned, and its signal fires', async () => {
    vi.useFakeTimers()
    let received: AbortSignal | undefined
    const asked = ask(
      (_, { signal }) => {
        received = signal
        return never('', { signal })
      },
      { timeoutMs: 5000 },
    )
    const failed = asked.catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(4999)
    expect(received?.aborted).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(await failed).toEqual(new ModelError('the model did not answer within 5000 ms'))
    expect(received?.aborted).toBe(true)
    expect(vi.getTimerCount()).toBe(0)
  })

  test('in time reports the error of its last try', async () => {
    vi.useFakeTimers()
    const asked = ask(
      (prompt, { signal, onProblem }) => {
        onProblem?.('answered 503')
        onProblem?.('answered 429')
        return never(prompt, { signal })
      },
      { timeoutMs: 5000 },
    )
    const failed = asked.catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(5000)
    expect(await failed).toEqual(
      new ModelError('the model did not answer within 5000 ms; the last problem: answered 429'),
    )
  })

  test('at all: a timeout longer than any timer does not fire early', async () => {
    vi.useFakeTimers()
    const left = new AbortController()
    const asked = ask(never, { signal: left.signal, timeoutMs: Number.MAX_SAFE_INTEGER })
    const failed = asked.catch((error: unknown) => error)
    await vi.advanceTimersByTimeAsync(24 * 3600 * 1000)
    left.abort(new Error('enough'))
    expect(await failed).toEqual(new Error('enough'))
  })

  test('because it throws, at once or later, gives a ModelError with the cause', async () => {
    const cause = new Error('no key')
    const throwing: LLMCaller[] = [
      () => {
        throw cause
      },
      async () => {
        throw cause
      },
    ]
    for (const caller of throwing) {
      await expect(ask(caller)).rejects.toMatchObject({
        name: 'ModelError',
        message: 'the model failed: no key',
        cause,
      })
    }
    await expect(ask(rejectingWithText)).rejects.toThrow(new ModelError('the model failed: a text'))
  })

  test('a ModelError is passed on unchanged', async () => {
    const own = new ModelError('over quota')
    await expect(ask(() => Promise.reject(own))).rejects.toBe(own)
  })

  test('before an abort rejects with its reason, and its signal fires', async () => {
    const left = new AbortController()
    const reason = new Error('left')
    let received: unknown
    const asked = ask(
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            received = signal.reason
            reject(new Error('what a library makes of it'))
          })
        }),
      { signal: left.signal },
    )
    left.abort(reason)
    await expect(asked).rejects.toBe(reason)
    expect(received).toBe(reason)
  })

  test('is not called when the signal has already fired', async () => {
    const caller = vi.fn<LLMCaller>(never)
    await expect(ask(caller, { signal: AbortSignal.abort(new Error('before')) })).rejects.toThrow('before')
    expect(caller).not.toHaveBeenCalled()
  })

  test('leaves no listener on the signal after any outcome', async () => {
    const { signal } = new AbortController()
    await ask(async () => 'x', { signal })
    await ask(never, { signal, timeoutMs: 1 }).catch(() => undefined)
    await ask(() => Promise.reject(new Error('x')), { signal }).catch(() => undefined)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
})

describe('two callables in two roles (OR-10)', () => {
  test('each is called in its role', async () => {
    const planner: LLMCaller = async (prompt) => ({ text: `plan for ${prompt}`, model: 'large' })
    const coder = { invoke: async (prompt: string) => ({ content: `code for ${prompt}` }), model: 'small' }
    const [a, b] = await Promise.all([ask(callerOf(planner)), ask(callerOf(coder))])
    expect([a.text, a.model, b.text, b.model]).toEqual(['plan for the prompt', 'large', 'code for the prompt', 'small'])
  })

  test.each([[undefined], [null], ['gpt-5'], [5], [{}], [{ doGenerate: () => 1 }], [{ invoke: 5 }]])(
    '%j is not a model',
    (given) => {
      expect(() => callerOf(given as ModelInput)).toThrow(/^model: must be an async function/)
    },
  )
})
