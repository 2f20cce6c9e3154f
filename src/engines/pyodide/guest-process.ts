import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import type { Duplex, Readable, Writable } from 'node:stream'
import { messageOf, SandglassError, shortageError } from '../../errors/index.ts'
import { FrameSplitter } from '../../protocol/index.ts'
import type { GuestProcess, ProcessEnd } from './guest-interface.ts'
import { makeUnstartedGuest } from './guest-not-started.ts'
import type { GuestMessage, StartMessage } from './guest/wire.ts'

/** Maximum length of a line of a guest: a chunk of a file, as base64. */
const MAX_LINE_BYTES = 1024 * 1024
const MAX_STDERR_CHARS = 8192
const PIPES = ['pipe', 'ignore', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'] as const

/** The command that starts a guest. */
export interface GuestCommand {
  readonly program: string
  readonly args: readonly string[]
  /** Descriptors of this process that the guest must not have. */
  readonly covered?: readonly number[]
  /** True if it is bubblewrap with the guest inside. */
  readonly isInBubblewrap?: boolean
}

/**
 * Starts a guest and sends its first message. If no process can be started, `ended` gives the reason, unless the reason is known
 * at once.
 * @throws SandglassError `sandbox_setup_failed`.
 */
export function startGuest(
  command: GuestCommand,
  message: StartMessage,
  ...bytes: readonly Uint8Array[]
): GuestProcess {
  const child = spawnGuest(command)
  if (child.pid === undefined) return makeUnstartedGuest(child, (error) => makeStartError(command, error))
  const input = child.stdin as Writable
  const [frames, stdout, stderr, control, interrupts] = child.stdio.slice(3, PIPES.length) as [
    Readable,
    Readable,
    Readable,
    Readable,
    Duplex,
  ]
  let onNoted = (): void => undefined
  interrupts.on('data', () => onNoted())
  let nodeStderr = ''
  const { promise: ended, resolve: end } = Promise.withResolvers<ProcessEnd>()
  input.on('error', () => {}) // the end of the process reports it
  for (const stream of [frames, stdout, stderr, control, interrupts, child.stderr as Readable])
    stream.on('error', () => {})
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    if (nodeStderr.length < MAX_STDERR_CHARS) nodeStderr += text.slice(0, MAX_STDERR_CHARS - nodeStderr.length)
  })
  child.once('error', (error) => {
    nodeStderr += messageOf(error)
    end({ code: null, signal: null })
  })
  child.once('close', (code, signal) =>
    end(command.isInBubblewrap === true ? decodeBubblewrapEnd(code, signal) : { code, signal }),
  )
  for (const stream of child.stdio) (stream as { unref?: () => void } | null)?.unref?.()
  child.unref()
  const kill = (): void => {
    // The caller waits for the last process that has the pipes to end. With bubblewrap that is not the one that was started.
    for (const one of [child, ...child.stdio]) (one as { ref?: () => void } | null)?.ref?.()
    if (command.isInBubblewrap === true) killGroup(child)
    else child.kill('SIGKILL')
  }

  const self: GuestProcess = {
    pid: child.pid,
    frames,
    stdout,
    stderr,
    control: messagesOf(control),
    ended,
    send(sent, ...rest) {
      input.write(prefixLength(Buffer.from(JSON.stringify(sent))))
      for (const piece of rest) input.write(piece)
    },
    sendToScript: (body) => void input.write(prefixLength(body)),
    get unsentBytes() {
      return input.writableLength
    },
    awaitTaken: () => awaitDrain(input),
    interrupt(turn, noted) {
      onNoted = noted
      const number = Buffer.alloc(4)
      number.writeInt32LE(turn)
      interrupts.write(number)
    },
    kill,
    destroy() {
      kill()
      for (const stream of child.stdio) if (stream !== child.stderr) stream?.destroy()
    },
    lastOutput: () => nodeStderr.trim(),
  }
  self.send(message, ...bytes)
  return self
}

function spawnGuest(command: GuestCommand): ChildProcess {
  try {
    return spawnCovered(command)
  } catch (error) {
    throw makeStartError(command, error)
  }
}

function makeStartError({ program }: GuestCommand, error: unknown): SandglassError {
  const what = `no process can be started from ${program}`
  const options = { cause: error }
  return (
    shortageError(error, what) ?? new SandglassError('sandbox_setup_failed', `${what}: ${messageOf(error)}`, options)
  )
}

/** Starts a program with `/dev/null` in place of the covered descriptors of this process. */
function spawnCovered({ program, args, covered = [], isInBubblewrap = false }: GuestCommand): ChildProcess {
  // 'ignore' does not close descriptors above 2.
  const nothing = covered.length === 0 ? undefined : openSync('/dev/null', 'r')
  const last = Math.max(...covered, 0)
  const rest = Array.from({ length: Math.max(0, last + 1 - PIPES.length) }, () => nothing)
  try {
    return spawn(program, args, {
      cwd: '/',
      env: {},
      stdio: [...PIPES, ...rest],
      windowsHide: true,
      detached: isInBubblewrap, // a process group of its own, which can be killed as a whole
    })
  } finally {
    if (nothing !== undefined) closeSync(nothing)
  }
}

/** Kills the group, which contains processes that bubblewrap has started and not yet tied to its own life. */
function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid === undefined || exitCode !== null || signalCode !== null) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

/** Bubblewrap exits with 128 plus the number of the signal that ended its child. */
function decodeBubblewrapEnd(code: number | null, signal: string | null): ProcessEnd {
  const name = Object.entries(constants.signals).find(([, number]) => code === 128 + number)?.[0]
  return name === undefined ? { code, signal } : { code: null, signal: name }
}

function awaitDrain(input: Writable): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (!input.writableNeedDrain || input.destroyed) return Promise.resolve()
  const settle = (): void => {
    for (const event of TAKEN_EVENTS) input.removeListener(event, settle)
    resolve()
  }
  for (const event of TAKEN_EVENTS) input.once(event, settle)
  return promise
}

const TAKEN_EVENTS = ['drain', 'close', 'error']

/** Adds the length to a message, in one buffer: each write wakes the reader. */
function prefixLength(body: Uint8Array): Uint8Array {
  const message = Buffer.allocUnsafe(4 + body.length)
  message.writeUInt32LE(body.length)
  message.set(body, 4)
  return message
}

async function* messagesOf(control: Readable): AsyncIterableIterator<GuestMessage> {
  const splitter = new FrameSplitter(MAX_LINE_BYTES)
  try {
    for await (const chunk of control) {
      for (const { line, payload } of splitter.push(chunk as Uint8Array)) {
        const message = parseMessage(line)
        if (message?.type === 'content') yield { type: 'content', payload: payload ?? Buffer.alloc(0) }
        else if (message !== undefined) yield message
      }
    }
  } catch {
    // The rest cannot be trusted. The process ends, and its end is reported.
  }
}

/** Parses a line as a message. Only its type is checked here; its fields are checked where they are used. */
function parseMessage(line: Uint8Array): GuestMessage | undefined {
  if (line.length === 0) return undefined
  try {
    const value: unknown = JSON.parse(Buffer.from(line).toString('utf8'))
    return typeof value === 'object' && value !== null && 'type' in value ? (value as GuestMessage) : undefined
  } catch {
    return undefined
  }
}
