import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { EngineUnderTest } from '../adversarial/driver/engine.ts'
import type { HostAnswer, HostCall, Outcome, Script } from './host-calls.ts'
import { compileCache } from '../../test/support/compile-cache.ts'

/** A requested run. */
export interface RunHandle {
  /** Resolves with the sandbox id when the script has begun. */
  readonly begun: Promise<string>
  readonly settled: Promise<SettledCall>
  abort(): void
}

/** The outcome of a call and its time by the clock of the driver. */
export interface SettledCall extends Outcome {
  readonly at: number
}

/** A host process for faults. It ends when this process ends. */
export interface ChaosHost {
  readonly pid: number
  readonly gone: Promise<void>
  isGone(): boolean
  run(script: Script, seconds: number, deadlineSec: number): RunHandle
  ask(call: 'open' | 'rest' | 'grow' | 'clock' | 'close'): Promise<SettledCall>
  solve(journal: string): Promise<SettledCall>
  signal(name: NodeJS.Signals): void
  /** The end of its stderr, such as the last error of Node. */
  stderr(): string
}

/** Start options: a program that executes the rest of the command line, and additional variables. */
export interface HostStart {
  readonly prefix: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

type Call = HostCall extends infer Each ? (Each extends HostCall ? Omit<Each, 'number'> : never) : never
interface Waiting {
  readonly begun: (sandbox: string) => void
  readonly settled: (outcome: Outcome) => void
}

const MAIN = fileURLToPath(new URL('host.main.ts', import.meta.url))
const GONE: Outcome = { said: 'host gone', sandbox: '' }

/** Starts a host process on an engine. It has no open Sandglass yet. */
export function startChaosHost(engine: EngineUnderTest, { prefix, env }: HostStart): ChaosHost {
  const command = [
    ...prefix,
    process.execPath,
    '--disable-warning=ExperimentalWarning',
    MAIN,
    engine.module,
    engine.state,
  ]
  const child = spawn(command[0] ?? '', command.slice(1), {
    env: { PATH: process.env['PATH'] ?? '', HOME: '/nonexistent', ...compileCache(), ...env },
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  let stderr = ''
  child.stderr?.on('data', (data: Buffer) => (stderr = (stderr + data.toString()).slice(-4000)))
  const ask = makeCaller(child)
  const killAtExit = (): void => void child.kill('SIGKILL')
  process.prependOnceListener('exit', killAtExit) // before its site is removed, because it would keep writing there
  const gone = new Promise<void>((resolve) => {
    const onGone = (): void => {
      process.removeListener('exit', killAtExit)
      resolve()
    }
    child.once('exit', onGone)
    child.once('error', onGone)
  })
  return {
    pid: child.pid ?? 0,
    gone,
    isGone: () => child.exitCode !== null || child.signalCode !== null,
    run: (script, seconds, deadlineSec) => {
      const { number, begun, settled } = ask({ call: 'run', script, seconds, deadlineSec })
      return { begun, settled, abort: () => void ask({ call: 'abort', run: number }) }
    },
    ask: (call) => ask({ call }).settled,
    solve: (journal) => ask({ call: 'solve', journal }).settled,
    signal: (name) => void child.kill(name),
    stderr: () => stderr,
  }
}

function makeCaller(child: ChildProcess): (call: Call) => Omit<RunHandle, 'abort'> & { readonly number: number } {
  const waiting = new Map<number, Waiting>()
  let count = 0
  const lose = (): void => {
    for (const { settled } of waiting.values()) settled(GONE)
  }
  child.on('message', (answer: HostAnswer) => {
    const one = waiting.get(answer.number)
    if ('begun' in answer) one?.begun(answer.begun)
    else one?.settled(answer.outcome)
  })
  child.once('exit', lose)
  child.once('error', lose)
  return (call) => {
    const number = (count += 1)
    const begun = Promise.withResolvers<string>()
    const settled = Promise.withResolvers<SettledCall>()
    waiting.set(number, {
      begun: begun.resolve,
      settled: (outcome) => {
        waiting.delete(number)
        begun.resolve(outcome.sandbox)
        settled.resolve({ ...outcome, at: performance.now() })
      },
    })
    if (!child.connected) waiting.get(number)?.settled(GONE)
    // Errors are ignored: when the host is killed during the call, its exit settles it.
    else child.send({ ...call, number }, () => {})
    return { number, begun: begun.promise, settled: settled.promise }
  }
}
