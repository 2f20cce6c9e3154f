import { once } from 'node:events'
import { userInfo } from 'node:os'
import { createInterface } from 'node:readline/promises'
import { setTimeout } from 'node:timers/promises'
import { MAX_DECIDER } from '../review/index.ts'
import { holdTerminal } from './live-line.ts'

/** Time for the terminal to pass on earlier input, in milliseconds. */
const DROP_MS = 50

/** The name of the user; a container may have none for its uid. */
export function userName(env: NodeJS.ProcessEnv): string {
  try {
    return userInfo().username.slice(0, MAX_DECIDER)
  } catch {
    return (env['USER'] ?? `uid ${process.getuid?.() ?? 'unknown'}`).slice(0, MAX_DECIDER)
  }
}

/** Reads and drops the lines that wait in the terminal. */
export async function dropInput(): Promise<void> {
  const { stdin } = process
  const drop = (): void => {}
  stdin.on('data', drop)
  await setTimeout(DROP_MS)
  stdin.off('data', drop)
  stdin.pause()
}

/** Reads a line from the terminal. @throws Error if the terminal ends first. */
export async function ask(question: string, signal: AbortSignal): Promise<string> {
  using _ = await holdTerminal()
  const lines = createInterface({ input: process.stdin, output: process.stderr })
  const end = (): never => {
    signal.throwIfAborted()
    throw new Error('the terminal ended before a decision')
  }
  const closed = once(lines, 'close').then(end)
  closed.catch(() => undefined)
  // Ctrl-C ends the whole command, not only the question.
  lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'))
  try {
    // Ctrl-D rejects the question in some versions of Node, and leaves it open in others.
    return await Promise.race([lines.question(question, { signal }).catch(end), closed])
  } finally {
    lines.close()
  }
}
