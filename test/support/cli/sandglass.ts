import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { anyLine } from './line-schemas.ts'
import { compileCache } from '../compile-cache.ts'
import { cliProgram } from './program.ts'

/** A line of JSON from stdout with the fields that tests use; it was checked with the schema. */
export interface Line {
  readonly type: string
  readonly id?: string | null
  readonly key?: string
  readonly line?: number
  readonly status?: string
  readonly success?: boolean
  readonly error_kind?: string | null
  readonly code?: string | null
  readonly error?: string | null
  readonly traceback?: string | null
  readonly final_data?: unknown
  readonly stdout?: string
  readonly text?: string
  readonly message?: string
  readonly execution_id?: string
  readonly duration_ms?: number
  readonly warnings?: readonly { readonly code: string; readonly message: string }[]
  readonly violations?: readonly { readonly code: string }[]
  readonly tool_calls?: readonly unknown[]
  readonly intermediates?: readonly unknown[]
  readonly logs?: readonly unknown[]
  readonly ending?: unknown
  readonly sandbox?: { readonly id: string; readonly use: number; readonly limits_enforced: readonly string[] }
  readonly sandbox_id?: string
  readonly files?: readonly { readonly path: string; readonly content_base64: string }[]
}

/** The young generation has its final size from the start: growing in steps, it copies the loaded library several times, for 40 ms. */
const YOUNG = '--min-semi-space-size=16'

/** The exit code and output of a command. */
export interface CommandResult {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** The command line as a program, with a state directory of its own. */
export interface Cli extends Disposable {
  /** An empty directory for files of the test. */
  readonly directory: string
  /** Writes a file there and returns its path. */
  file(name: string, content: string): string
  start(args: readonly string[], env?: Record<string, string>, wrapper?: readonly string[]): Running
  /** Runs a command to its end; `wrapper` is a program with arguments that executes the command. */
  run(
    args: readonly string[],
    options?: { input?: string; env?: Record<string, string>; wrapper?: readonly string[] },
  ): Promise<CommandResult>
}

/** A running command. */
export interface Running {
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  /** Its output so far. */
  stdout(): string
  /** Resolves when stdout holds a text. */
  said(text: string): Promise<void>
  readonly ended: Promise<CommandResult>
}

/** Makes a command line; dispose of it at the end of the file. */
export function makeCli(): Cli {
  const directory = mkdtempSync(join(tmpdir(), 'sandglass-cli-'))
  chmodSync(directory, 0o755)
  const main = cliProgram()
  const start: Cli['start'] = (args, env = {}, wrapper = []) => {
    const [program, ...rest] = [...wrapper, process.execPath, YOUNG, main, ...args] as [string, ...string[]]
    const child = spawn(program, rest, {
      env: {
        PATH: process.env['PATH'] ?? '',
        SANDGLASS_STATE_DIR: join(directory, 'state'),
        ...compileCache(),
        ...(process.env['DOCKER_HOST'] === undefined ? {} : { DOCKER_HOST: process.env['DOCKER_HOST'] }),
        ...env,
      },
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    child.stdin.on('error', () => {}) // the program may end before it reads
    return running(child)
  }
  return {
    directory,
    file(name, content) {
      const path = join(directory, name)
      writeFileSync(path, content)
      return path
    },
    start,
    run(args, { input = '', env, wrapper } = {}) {
      const { child, ended } = start(args, env, wrapper)
      child.stdin.end(input)
      return ended
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  }
}

/** The lines of stdout, each checked with the schema. */
export function linesOf({ stdout }: { readonly stdout: string }): Line[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => anyLine.parse(JSON.parse(line)) as Line)
}

/** The last line of stdout: the result or the error. */
export function lastLine(ended: { readonly stdout: string }): Line {
  const last = linesOf(ended).at(-1)
  if (last === undefined) throw new Error('stdout is empty')
  return last
}

function running(child: ChildProcessByStdio<Writable, Readable, Readable>): Running {
  let stdout = ''
  let stderr = ''
  const grown = new EventTarget()
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
    grown.dispatchEvent(new Event('grown'))
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const ended = once(child, 'close').then(() => {
    grown.dispatchEvent(new Event('grown'))
    return { code: child.exitCode, stdout, stderr }
  })
  return {
    child,
    ended,
    stdout: () => stdout,
    async said(text) {
      while (!stdout.includes(text)) {
        if (child.stdout.readableEnded) throw new Error(`it ended without ${JSON.stringify(text)}: ${stdout}${stderr}`)
        await new Promise((resolve) => {
          grown.addEventListener('grown', resolve, { once: true })
        })
      }
    },
  }
}
