import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Answer } from './drivers/serve.ts'
import { descendantsOf } from '../../test/support/processes.ts'

/** The secrets of a host application, which no script should see. */
export const SECRET = 'sandglass-peers-secret'

/** Directories of one driver: they hold everything that a peer keeps beside its process. */
export interface Home {
  readonly root: string
  /** Paths of all files and directories below it. */
  files(): string[]
  remove(): void
}

/** A process that drives one peer: it plays the application that uses the peer. */
export interface Driver {
  readonly pid: number
  /** @throws Error where the driver itself failed. */
  ask(op: string, request?: { readonly code?: string; readonly seconds?: number }): Promise<Answer>
  /** SIGKILL, as the kernel would do when memory runs out. */
  kill(): Promise<void>
  /** Closes the session and ends; remaining child processes are killed. */
  close(): Promise<void>
}

/** Makes the directories. */
export function makeHome(): Home {
  const root = mkdtempSync(join(tmpdir(), 'sg-peer-'))
  chmodSync(root, 0o755) // as /home is: sandboxes with other users must be able to enter
  for (const name of ['home', 'tmp', 'work', 'state']) mkdirSync(join(root, name))
  writeFileSync(join(root, 'home/secret.txt'), SECRET)
  return {
    root,
    files: () => readdirSync(root, { recursive: true, encoding: 'utf8' }).toSorted(),
    remove: () => rmSync(root, { recursive: true, force: true }),
  }
}

/** Starts the driver of a peer with a home of its own. */
export function startDriver(command: readonly string[], home: Home, env: Readonly<Record<string, string>>): Driver {
  const [program = '', ...args] = command
  const child = spawn(program, args, {
    cwd: join(home.root, 'work'),
    stdio: ['pipe', 'pipe', process.env['PEERS_VERBOSE'] === undefined ? 'ignore' : 2],
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: join(home.root, 'home'),
      TMPDIR: join(home.root, 'tmp'),
      SECRET_CANARY: SECRET,
      // Sandglass keeps its locks and records there; the default is shared with other programs of the machine.
      SANDGLASS_STATE_DIR: join(home.root, 'state'),
      ...env,
    },
  })
  return driverOf(child)
}

function driverOf(child: ChildProcess): Driver {
  const ended = once(child, 'exit')
  const waiting: ((answer: Answer) => void)[] = []
  const { stdin, stdout, pid = 0 } = child
  if (stdin === null || stdout === null) throw new Error('no pipes')
  stdin.on('error', () => {}) // the end of a driver that is gone is reported below
  createInterface({ input: stdout }).on('line', (line) => waiting.shift()?.(JSON.parse(line) as Answer))
  void ended.then(() => {
    for (const answer of waiting.splice(0)) answer({ trouble: 'the driver ended' })
  })
  const ask: Driver['ask'] = async (op, request = {}) => {
    const answered = new Promise<Answer>((resolve) => {
      waiting.push(resolve)
    })
    stdin.write(`${JSON.stringify({ op, ...request })}\n`)
    const answer = await answered
    if (answer.trouble !== undefined) throw new Error(answer.trouble)
    return answer
  }
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
  }
  return {
    pid,
    ask,
    kill,
    async close() {
      await ask('close').catch(() => {})
      const below = descendantsOf(pid)
      stdin.end()
      const patience = setTimeout(() => child.kill('SIGKILL'), 10_000)
      await ended
      clearTimeout(patience)
      for (const each of below) killQuietly(each)
    },
  }
}

function killQuietly(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has ended already.
  }
}
