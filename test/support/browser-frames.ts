import { spawn } from 'node:child_process'
import { EventEmitter, once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'

const TIMEOUT_MS = 60_000

/** A message of the browser's protocol. */
interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: Readonly<Record<string, unknown>>
  readonly result?: unknown
  readonly error?: { readonly message: string }
}

/** A page in a browser, and code in its frames. */
export interface OpenFrames extends AsyncDisposable {
  /**
   * Evaluates an expression in frames, in any order.
   * @param expression may be a promise.
   * @param where an expression that is true in these frames. Where no scripts run, a promise would never settle.
   */
  evaluate(expression: string, where: string): Promise<unknown[]>
  /** Evaluates an expression in the page itself. */
  evaluateInPage(expression: string): Promise<unknown>
  /** A picture of the whole page, as PNG. */
  picture(): Promise<Buffer>
}

/**
 * Opens a file in a browser that stays open, to see what happens in frames after the page is loaded. It is driven by pipes, so nothing
 * listens on the network.
 * @param program Debian's Chromium.
 */
export async function openFrames(
  program: string,
  file: string,
  { width = 1100, height = 900 }: { readonly width?: number; readonly height?: number } = {},
): Promise<OpenFrames> {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-browser-'))
  const flags = [
    '--headless',
    '--no-sandbox',
    '--disable-gpu',
    '--enable-unsafe-swiftshader',
    '--remote-debugging-pipe',
  ]
  const browser = spawn(program, [...flags, `--user-data-dir=${directory}`, `--window-size=${width},${height}`], {
    stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    timeout: TIMEOUT_MS,
  })
  const pipe = new Pipe(browser.stdio[3] as Writable, browser.stdio[4] as Readable)
  const { targetId } = (await pipe.send('Target.createTarget', { url: 'about:blank' })) as { targetId: string }
  const { sessionId: page } = (await pipe.send('Target.attachToTarget', { targetId, flatten: true })) as {
    sessionId: string
  }
  await pipe.send('Target.setAutoAttach', { autoAttach: true, waitForDebuggerOnStart: false, flatten: true }, page)
  await pipe.send('Page.enable', {}, page)
  await pipe.send('Runtime.enable', {}, page)
  const loaded = pipe.seen('Page.loadEventFired')
  await pipe.send('Page.navigate', { url: pathToFileURL(file).href }, page)
  await loaded
  return {
    evaluate: async (expression, where) => {
      const chosen = await Promise.all(pipe.frames.map((frame) => pipe.evaluate(where, frame)))
      const frames = pipe.frames.filter((_, place) => chosen[place] === true)
      return Promise.all(frames.map((frame) => pipe.evaluate(expression, frame, true)))
    },
    evaluateInPage: (expression) => pipe.evaluate(expression, page),
    picture: async () => {
      const { data } = (await pipe.send('Page.captureScreenshot', { captureBeyondViewport: true }, page)) as {
        data: string
      }
      return Buffer.from(data, 'base64')
    },
    [Symbol.asyncDispose]: async () => {
      const ended = once(browser, 'exit')
      if (browser.exitCode === null) {
        browser.kill('SIGKILL')
        await ended
      }
      rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
    },
  }
}

/** The browser's protocol over two pipes: messages of JSON that end with a zero byte. */
class Pipe {
  /** The sessions of frames that have an origin, and therefore a process, of their own. */
  readonly frames: string[] = []
  readonly #to: Writable
  readonly #answers = new Map<number, (message: Message) => void>()
  readonly #events = new EventEmitter()
  #sent = 0

  constructor(to: Writable, from: Readable) {
    this.#to = to
    void this.#read(from)
  }

  async send(method: string, params: object = {}, sessionId?: string): Promise<unknown> {
    const id = (this.#sent += 1)
    const answer = new Promise<Message>((resolve) => {
      this.#answers.set(id, resolve)
    })
    this.#to.write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    const { result, error } = await answer
    if (error !== undefined) throw new Error(`${method}: ${error.message}`)
    return result
  }

  seen(method: string): Promise<unknown> {
    return once(this.#events, method)
  }

  async evaluate(expression: string, sessionId: string, awaitPromise = false): Promise<unknown> {
    const wanted = { expression, awaitPromise, returnByValue: true, allowUnsafeEvalBlockedByCSP: false }
    const { result, exceptionDetails } = (await this.send('Runtime.evaluate', wanted, sessionId)) as {
      result: { value?: unknown }
      exceptionDetails?: { exception?: { description?: string } }
    }
    if (exceptionDetails !== undefined) throw new Error(exceptionDetails.exception?.description ?? expression)
    return result.value
  }

  async #read(from: Readable): Promise<void> {
    let rest = ''
    for await (const text of from.setEncoding('utf8') as AsyncIterable<string>) {
      const parts = (rest + text).split('\0')
      rest = parts.pop() ?? ''
      for (const part of parts) this.#take(JSON.parse(part) as Message)
    }
  }

  #take(message: Message): void {
    const { id, method, params } = message
    if (id !== undefined) return this.#answers.get(id)?.(message)
    if (method === 'Target.attachedToTarget') {
      const { sessionId, targetInfo } = params as { sessionId: string; targetInfo: { type: string } }
      if (targetInfo.type === 'iframe') this.frames.push(sessionId)
    }
    this.#events.emit(method ?? '', params)
  }
}
