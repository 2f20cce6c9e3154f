import { parentPort } from 'node:worker_threads'
import { createContext, Script } from 'node:vm'
import { type ThreadRequest, MAX_ANSWER_CHARS, type ThreadMessage } from './judge-thread.ts'

/* The program of the judge's thread. It imports the module of a question, which exports `answer`, and says so, because the
 * deadline begins then. */
const tell = (message: ThreadMessage): void => parentPort?.postMessage(message)

const globals: { ask: () => unknown } = { ask: () => undefined }
const context = createContext(globals)
const call = new Script('ask()')

/** The maximum number of times that a question is asked again because the thread got too little processor time. */
const MAX_STARVED = 1
/** The time from the beginning of the first try to the end of the last, in milliseconds: the host kills the thread later. */
const MAX_STARVED_MS = 100

/** The processor time of this thread in milliseconds; the time of the clock where Node does not tell it. */
function threadMs(): number {
  const { threadCpuUsage } = process as { threadCpuUsage?: () => { user: number; system: number } }
  if (threadCpuUsage === undefined) return performance.now()
  const { user, system } = threadCpuUsage.call(process)
  return (user + system) / 1000
}

/**
 * Calls `ask` for at most `timeout` milliseconds. A call that was interrupted before it had half of them on a processor is
 * repeated: on a busy machine, a question that needs a few microseconds would count as one that overran.
 */
function callInTime(timeout: number): unknown {
  const last = performance.now() + MAX_STARVED_MS - timeout
  for (let starved = 0; ; starved += 1) {
    const before = threadMs()
    try {
      // Loops and patterns end by an interrupt, which costs no new thread. What cannot be interrupted, the host kills.
      return call.runInContext(context, { timeout }) as unknown
    } catch (error) {
      const wasStarved = isInterrupt(error) && threadMs() - before < timeout / 2
      if (!wasStarved || starved >= MAX_STARVED || performance.now() > last) throw error
    }
  }
}

function isInterrupt(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

parentPort?.on('message', ({ module, input, interruptMs }: ThreadRequest) => {
  void (async () => {
    try {
      const { answer } = (await import(module)) as { answer: (input: unknown) => unknown }
      tell({ kind: 'started' })
      globals.ask = () => answer(input)
      const given = callInTime(interruptMs)
      tell({ kind: 'answer', text: String(await given).slice(0, MAX_ANSWER_CHARS) })
    } catch (error) {
      tell(
        isInterrupt(error)
          ? { kind: 'interrupted' }
          : { kind: 'failed', text: String(error).slice(0, MAX_ANSWER_CHARS) },
      )
    }
  })()
})
