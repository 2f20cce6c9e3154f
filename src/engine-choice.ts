import { messageOf, SandglassError } from './errors/index.ts'
import type { SandboxEngine } from './sandbox/index.ts'

/** An engine that `auto` did not take, and why. */
export interface PassedOver {
  readonly engine: string
  readonly code: string
  readonly message: string
}

/** What is wrong whatever the engine. */
const NOT_THE_ENGINE: ReadonlySet<string> = new Set([
  'invalid_request',
  'limits_do_not_fit',
  'packages_unreadable',
  'mount_refused',
  'aborted',
])

/**
 * Opens the first engine that does: its first sandbox is the probe.
 * @param open makes a sandbox, and checks what was asked for; it gives everything back before it throws.
 * @throws what `open` throws where it is no engine's fault; SandglassError with the common code of all refusals, else
 * `engine_unavailable`, with the reason of each.
 */
export async function firstThatOpens<T>(
  makers: readonly (() => SandboxEngine)[],
  open: (engine: SandboxEngine, passedOver: readonly PassedOver[]) => Promise<T>,
): Promise<T> {
  const passedOver: PassedOver[] = []
  const errors: unknown[] = []
  for (const make of makers) {
    const engine = make()
    try {
      return await open(engine, passedOver)
    } catch (error) {
      if (!(error instanceof SandglassError) || NOT_THE_ENGINE.has(error.code)) throw error
      passedOver.push({ engine: engine.name, code: error.code, message: messageOf(error) })
      errors.push(error)
    }
  }
  const [first, ...others] = errors
  if (first instanceof SandglassError && others.length === 0) throw first
  const codes = new Set(errors.map((error) => (error as SandglassError).code))
  const [common] = codes
  throw new SandglassError(
    codes.size === 1 && common !== undefined ? common : 'engine_unavailable',
    `no engine does on this machine: ${passedOver.map(({ engine, message }) => `${engine}: ${message}`).join('; ')}`,
    { cause: new AggregateError(errors) },
  )
}

let warned = false

/** Says once in a process, in plain words, that nothing of the operating system holds scripts. */
export function warnOfLanguageOnly(engine: string, passedOver: readonly PassedOver[]): void {
  if (warned) return
  warned = true
  const others = passedOver.map(({ engine: other, code }) => `${other} (${code})`).join(', ')
  process.emitWarning(
    `the engine ${engine} holds scripts by the walls of WebAssembly and Node alone, not by the operating system; ` +
      'do not run scripts in it that somebody may have written to break out' +
      (others === '' ? '' : `. Passed over: ${others}. sandglass doctor tells more`),
    { type: 'SandglassWarning', code: 'SANDGLASS_LANGUAGE_ONLY' },
  )
}
