import { dockerEngine } from './engines/docker/index.ts'
import { localEngine } from './engines/local/index.ts'
import { pyodideEngine } from './engines/pyodide/index.ts'
import { messageOf, SandglassError } from './errors/index.ts'
import type { SandglassOptions } from './options.ts'
import type { SandboxEngine } from './sandbox/index.ts'

/** An engine that `auto` did not take, and why. */
export interface PassedOver {
  readonly engine: string
  readonly code: string
  readonly message: string
}

type EngineOptions = Pick<SandglassOptions, 'engine' | 'local' | 'docker' | 'pyodide'>

/** What is wrong whatever the engine. */
const NOT_THE_ENGINE: ReadonlySet<string> = new Set([
  'invalid_request',
  'limits_do_not_fit',
  'packages_unreadable',
  'mount_refused',
  'aborted',
])

/**
 * Makers of the engines to try, in order.
 * @throws SandglassError `engine_unknown`.
 */
export function enginesFor({ engine = 'auto', ...options }: EngineOptions): (() => SandboxEngine)[] {
  if (typeof engine === 'object') return [() => engine]
  const makers = {
    local: () => localEngine(options.local),
    docker: () => dockerEngine(options.docker),
    pyodide: () => pyodideEngine(options.pyodide),
  }
  if (engine === 'auto') return Object.values(makers)
  if (Object.hasOwn(makers, engine)) return [makers[engine]]
  const known = ['auto', ...Object.keys(makers)]
  throw new SandglassError('engine_unknown', `no engine ${JSON.stringify(engine)}; known are ${known.join(', ')}`)
}

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
