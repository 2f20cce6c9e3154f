import type { Output } from './output.ts'

/** What a command works with. */
export interface Context {
  readonly stdout: Output
  readonly stderr: Output
  /** Fires at Ctrl-C, SIGTERM, SIGHUP, and when nobody reads stdout any more; its reason is a SandglassError. */
  readonly signal: AbortSignal
  /** Whether it fired because nobody reads any more: then there is nothing to tell. */
  readonly hasReaderLeft: () => boolean
  readonly env: NodeJS.ProcessEnv
}

/** A line about ourselves, for people. */
export function note(context: Context, text: string): Promise<void> {
  return context.stderr.write(`sandglass: ${text}\n`)
}

/** Whether lines may be redrawn and coloured on stderr. */
export function isLively({ stderr, env }: Context): boolean {
  return stderr.isTerminal && (env['NO_COLOR'] ?? '') === '' && env['TERM'] !== 'dumb'
}
