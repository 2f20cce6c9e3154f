import type { EngineTable } from '../engines/index.ts'
import type { Output } from './output.ts'
import { escapeForMessage } from './terminal-text.ts'

/** The environment of a command. */
export interface Context {
  readonly stdout: Output
  readonly stderr: Output
  /** Fires on Ctrl-C, SIGTERM and SIGHUP, and when the reader of stdout leaves; its reason is a SandglassError. */
  readonly signal: AbortSignal
  /** True if the signal fired because the reader of stdout left: then nothing more is written. */
  readonly isStdoutClosed: () => boolean
  readonly env: NodeJS.ProcessEnv
  readonly engines: EngineTable
}

/** Writes a message of the command itself to stderr. */
export function note(context: Context, text: string): Promise<void> {
  return context.stderr.write(`sandglass: ${escapeForMessage(text)}\n`)
}

/** A line for stderr with a mark that says what it is: `[info] …`. */
export function markedLine(context: Context, what: string, text: string): string {
  const name = `[${escapeForMessage(what)}]`
  const mark = supportsAnsi(context) ? `\u001B[2m${name}\u001B[22m` : name
  return `${mark} ${escapeForMessage(text.trimEnd())}\n`
}

/** True if stderr supports ANSI sequences: lines may be redrawn and coloured. */
export function supportsAnsi({ stderr, env }: Context): boolean {
  return stderr.isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}
