import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { ERROR_CODES, type ErrorCode, SandglassError } from '../../../src/errors/index.ts'
import type { RunOptions } from '../../../src/options/index.ts'
import type { SandboxReport } from '../../../src/sandbox/index.ts'
import type { Answer, Runner } from './answer.ts'
import type { EngineUnderTest, OpenOptions } from './engine.ts'
import type { HostAnswer, HostCall } from './host-calls.ts'
import { compileCache } from '../../../test/support/compile-cache.ts'

/** Start options of a host process. */
export interface HostStart {
  /** Variables that are added to PATH and HOME. */
  readonly env?: Readonly<Record<string, string>>
  /** A descriptor that the process inherits as fd 9. */
  readonly fd9?: number
  /** A program with arguments that executes the rest of the command line. */
  readonly prefix?: readonly string[]
  /** Engine state to use instead of the state of `engine`. */
  readonly state?: string
}

/** A separate host process with a Sandglass in it. */
export interface HostProcess extends Runner, AsyncDisposable {
  readonly pid: number
  /** @throws SandglassError with the error code from the host process. */
  open(options?: OpenOptions): Promise<void>
  report(): Promise<SandboxReport>
  /** Resident memory in bytes after garbage collection. */
  memory(): Promise<number>
  signal(signal: NodeJS.Signals): void
  /** Resolves when the process has exited. */
  readonly gone: Promise<void>
}

type Call = HostCall extends infer Each ? (Each extends HostCall ? Omit<Each, 'number'> : never) : never
type Waiting = { resolve: (answer: HostAnswer) => void; reject: (error: Error) => void }

const MAIN = fileURLToPath(new URL('host-main.ts', import.meta.url))
/** Fixes the size of the young generation: Node doubles it under load, which looks like a leak of about ten MiB. */
const FLAGS = ['--min-semi-space-size=16', '--max-semi-space-size=16']

/** Starts a host process. It ends when this process ends. */
export function startHost(engine: EngineUnderTest, start: HostStart = {}): HostProcess {
  const { env = {}, fd9, prefix = [], state = engine.state } = start
  const command = [...prefix, process.execPath, ...FLAGS, MAIN, engine.module, state]
  const child = spawn(command[0] ?? '', command.slice(1), {
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...compileCache(), ...env },
    serialization: 'advanced',
    stdio: [
      ...(['ignore', 'inherit', 'inherit', 'ipc'] as const),
      ...(fd9 === undefined ? [] : [...Array.from({ length: 5 }, () => 'ignore' as const), fd9]),
    ],
  })
  const ask = makeCaller(child)
  const gone = new Promise<void>((resolve) => {
    child.once('exit', () => resolve())
    child.once('error', () => resolve())
  })
  const signal = (name: NodeJS.Signals): void => void child.kill(name)
  return {
    pid: child.pid ?? 0,
    gone,
    signal,
    open: async (options = {}) => void (await ask({ call: 'open', options })),
    run: async (script: string, options: RunOptions) => (await ask({ call: 'run', script, options })) as Answer,
    report: async () => (await ask({ call: 'report' })) as SandboxReport,
    memory: async () => (await ask({ call: 'memory' })) as number,
    close: async () => void (await ask({ call: 'close' })),
    async [Symbol.asyncDispose]() {
      signal('SIGKILL')
      await gone
    },
  }
}

function makeCaller(child: ChildProcess): (call: Call) => Promise<unknown> {
  const waiting = new Map<number, Waiting>()
  let count = 0
  child.on('message', (answer: HostAnswer) => {
    waiting.get(answer.number)?.resolve(answer)
    waiting.delete(answer.number)
  })
  const lost = (): void => {
    for (const { reject } of waiting.values()) reject(new Error('the host process ended'))
    waiting.clear()
  }
  child.once('exit', lost)
  child.once('error', lost)
  return async (call) => {
    const number = (count += 1)
    const answer = await new Promise<HostAnswer>((resolve, reject) => {
      waiting.set(number, { resolve, reject })
      child.send({ ...call, number }, (error) => {
        if (error !== null) reject(error)
      })
    })
    if ('value' in answer) return answer.value
    const { code, message } = answer.thrown
    if (!Object.hasOwn(ERROR_CODES, code))
      throw new Error(`the host threw an error that is not a SandglassError: ${message}`)
    throw new SandglassError(code as ErrorCode, message)
  }
}
