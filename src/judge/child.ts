import { createContext, Script } from 'node:vm'
import { type JudgeRequest, MAX_ANSWER_CHARS, type JudgeMessage } from './judge-process.ts'

/* The program of the judge's child process. It imports the module of a question, which exports `answer`, and reports that, because the
 * deadline begins then. It exits when the host closes the channel or exits. */
const send = (message: JudgeMessage): void => void process.send?.(message)

const globals: { ask: () => unknown } = { ask: () => undefined }
const context = createContext(globals)
const call = new Script('ask()')

/** The maximum number of times that a question is repeated because the process got too little processor time. */
const MAX_STARVED = 1
/** The maximum time from the beginning of the first try to the end of the last, in milliseconds; less than the host's time limit. */
const MAX_STARVED_MS = 100

/** The processor time of this process in milliseconds. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/**
 * Calls `ask` for at most `timeout` milliseconds. A call that was interrupted before it had half of that as processor time is
 * repeated: on a busy machine, a question that needs a few microseconds would count as overrun.
 */
function callInTime(timeout: number): unknown {
  const last = performance.now() + MAX_STARVED_MS - timeout
  for (let starved = 0; ; starved += 1) {
    const before = cpuMs()
    try {
      // An interrupt ends loops and patterns, so that the process can be reused. If native code cannot be interrupted, the host kills it.
      return call.runInContext(context, { timeout }) as unknown
    } catch (error) {
      const wasStarved = isInterrupt(error) && cpuMs() - before < timeout / 2
      if (!wasStarved || starved >= MAX_STARVED || performance.now() > last) throw error
    }
  }
}

function isInterrupt(error: unknown): boolean {
  return (error as { code?: unknown } | null)?.code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

process.on('message', (request) => {
  const { module, input, interruptMs } = request as JudgeRequest
  void (async () => {
    try {
      const { answer } = (await import(module)) as { answer: (input: unknown) => unknown }
      send({ kind: 'started' })
      globals.ask = () => answer(input)
      const given = callInTime(interruptMs)
      send({ kind: 'answer', text: String(await given).slice(0, MAX_ANSWER_CHARS) })
    } catch (error) {
      send(
        isInterrupt(error)
          ? { kind: 'interrupted' }
          : { kind: 'failed', text: String(error).slice(0, MAX_ANSWER_CHARS) },
      )
    }
  })()
})
