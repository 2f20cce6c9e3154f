import type { JournalEvent } from '../journal/index.ts'
import type { TaskOptions } from './options.ts'
import type { ToolExecutionResult } from './result.ts'
import type { SolveEvent } from './solve-event.ts'

/** A task as events; leaving the loop cancels it and waits until it has settled. */
export async function* streamed<T>(
  options: Omit<TaskOptions<T>, 'onEvent'>,
  run: (options: TaskOptions<T>) => Promise<ToolExecutionResult<T>>,
): AsyncGenerator<SolveEvent<T>, void, void> {
  const left = new AbortController()
  const waiting: JournalEvent[] = []
  let news = Promise.withResolvers<void>()
  const signal = options.signal === undefined ? left.signal : AbortSignal.any([options.signal, left.signal])
  let isOver = false
  const running = run({
    ...options,
    signal,
    onEvent: (event) => {
      waiting.push(event)
      news.resolve()
    },
  }).finally(() => {
    isOver = true
    news.resolve()
  })
  // It is awaited below; until then a failure must not count as unhandled.
  running.catch(() => undefined)
  try {
    while (!isOver || waiting.length > 0) {
      if (waiting.length === 0) await news.promise
      news = Promise.withResolvers<void>()
      for (const event of waiting.splice(0)) yield { type: 'event', event }
    }
    yield { type: 'result', result: await running }
  } finally {
    left.abort()
    await running.catch(() => undefined)
  }
}
