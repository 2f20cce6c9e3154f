import { parentPort } from 'node:worker_threads'
import { createContext, Script } from 'node:vm'
import { type ThreadRequest, MAX_ANSWER_CHARS, type ThreadMessage } from './judge-thread.ts'

/* The program of the judge's thread. It imports the module of a question, which exports `answer`, and says so, because the
 * deadline begins then. */
const tell = (message: ThreadMessage): void => parentPort?.postMessage(message)

const globals: { ask: () => unknown } = { ask: () => undefined }
const context = createContext(globals)
const call = new Script('ask()')

parentPort?.on('message', ({ module, input, interruptMs }: ThreadRequest) => {
  void (async () => {
    try {
      const { answer } = (await import(module)) as { answer: (input: unknown) => unknown }
      tell({ kind: 'started' })
      globals.ask = () => answer(input)
      // Loops and patterns end by an interrupt, which costs no new thread. What cannot be interrupted, the host kills.
      const given: unknown = call.runInContext(context, { timeout: interruptMs })
      tell({ kind: 'answer', text: String(await given).slice(0, MAX_ANSWER_CHARS) })
    } catch (error) {
      const isInterrupted = (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
      tell(isInterrupted ? { kind: 'interrupted' } : { kind: 'failed', text: String(error).slice(0, MAX_ANSWER_CHARS) })
    }
  })()
})
