import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client'
import { LineSplitter } from '../protocol/index.ts'
import { formatPath } from '../support/index.ts'
import { boundMessage, MAX_MESSAGE_BYTES, MESSAGES_AT_ONCE, pauseAfter } from './mcp-bounds.ts'

/** A program to start, with its whole environment. */
export interface StdioProgram {
  readonly command: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly cwd: string | undefined
  readonly onStderr: (text: string) => void
}

const GRACE_MS = 2000
/** Maximum number of requests of the server that wait for a response. Further requests get none. */
const MAX_UNANSWERED = 32

/**
 * The transport of a client to an MCP server that is a program. The one of the client package copies a whole unfinished message
 * for each piece that arrives, and parses messages of any size.
 */
export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: NonNullable<Transport['onmessage']>
  readonly #program: StdioProgram
  #process: ChildProcessByStdio<Writable, Readable, Readable> | undefined
  #unanswered = 0

  constructor(program: StdioProgram) {
    this.#program = program
  }

  async start(): Promise<void> {
    const { command, args, env, cwd, onStderr } = this.#program
    const started = spawn(command, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'] })
    // Rejects with the reason. Node makes no streams if no descriptor is left.
    if (started.pid === undefined) await once(started, 'spawn')
    this.#process = started
    started.on('error', (error) => this.onerror?.(error))
    started.on('close', () => {
      this.#process = undefined
      this.onclose?.()
    })
    started.stdin.on('error', (error) => this.onerror?.(error))
    started.stderr.setEncoding('utf8').on('data', onStderr)
    void this.#read(started.stdout)
    await once(started, 'spawn')
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const stdin = this.#process?.stdin
    if (stdin === undefined) throw new Error(`the MCP server ${formatPath(this.#program.command)} is not running`)
    await new Promise<void>((resolve, reject) => {
      stdin.write(`${JSON.stringify(message)}\n`, (error) => (error instanceof Error ? reject(error) : resolve()))
    })
    if (!('method' in message)) this.#unanswered -= 1
  }

  /** Ends the program: its input first, then by signals. */
  async close(): Promise<void> {
    const ending = this.#process
    if (ending === undefined) return
    const exited = ending.exitCode === null && ending.signalCode === null ? once(ending, 'exit') : undefined
    ending.stdin.end()
    const timers = (['SIGTERM', 'SIGKILL'] as const).map((signal, at) =>
      setTimeout(() => ending.kill(signal), GRACE_MS * (at + 1)),
    )
    await exited
    for (const timer of timers) clearTimeout(timer)
    // Another process may have inherited the pipes.
    for (const stream of [ending.stdin, ending.stdout, ending.stderr]) stream.destroy()
  }

  /** Reads messages until the program closes its output, then ends the program, which can answer no more requests. */
  async #read(stdout: Readable): Promise<void> {
    const lines = new LineSplitter(MAX_MESSAGE_BYTES)
    const pause = pauseAfter(MESSAGES_AT_ONCE)
    try {
      for await (const chunk of stdout) {
        for (const line of lines.push(chunk as Buffer)) {
          this.#take(line)
          await pause()
        }
      }
    } catch (error) {
      this.onerror?.(error as Error)
    }
    await this.close()
  }

  /** @throws RangeError for a message that exceeds the bounds. */
  #take(line: Buffer): void {
    const bounded = boundMessage(line)
    let message: JSONRPCMessage
    try {
      message = JSON.parse(Buffer.from(bounded).toString('utf8')) as JSONRPCMessage
    } catch {
      return // some programs also print lines that are not messages
    }
    const kind = kindOf(message)
    // The client is slow to refuse a line that is not a message. It handles no notification, but keeps each for some turns.
    if (kind === undefined || kind === 'notification') return
    if (kind === 'request') {
      if (this.#unanswered >= MAX_UNANSWERED) return
      this.#unanswered += 1
    }
    this.onmessage?.(message)
  }
}

/** Undefined for a line that is not a message of JSON-RPC. */
function kindOf(message: unknown): 'request' | 'notification' | 'answer' | undefined {
  if (typeof message !== 'object' || message === null) return undefined
  if ('method' in message) return 'id' in message ? 'request' : 'notification'
  return 'id' in message && ('result' in message || 'error' in message) ? 'answer' : undefined
}
