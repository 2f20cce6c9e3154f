import { type EngineTable, ENGINES } from './engines/index.ts'
import { messageOf, SandglassError } from './errors/index.ts'
import type { SandglassOptions } from './options/index.ts'
import type { SandboxEngine } from './sandbox/index.ts'

/** An engine that `auto` skipped, and the reason. */
export interface PassedOver {
  readonly engine: string
  readonly code: string
  readonly message: string
}

/** Makes an engine without starting anything. */
type EngineMaker = () => Promise<SandboxEngine>

/** Codes of errors that do not depend on the engine. */
const NOT_THE_ENGINE: ReadonlySet<string> = new Set([
  'invalid_request',
  'limits_do_not_fit',
  'packages_unreadable',
  'mount_refused',
  'dependency_invalid',
  'dependency_not_found',
  'dependency_conflict',
  'dependency_too_new',
  'dependency_not_allowed',
  'index_unreachable',
  'index_refused',
  'installer_missing',
  'cache_dir_unusable',
  'aborted',
])

/**
 * Makers of the engines to try, in order. Each rejects with a TypeError for a wrong option of its engine.
 * @throws SandglassError `engine_unknown`.
 */
export function enginesFor(options: SandglassOptions, engines: EngineTable = ENGINES): EngineMaker[] {
  const { engine = 'auto' } = options
  if (typeof engine === 'object') return [() => Promise.resolve(engine)]
  const makers = Object.entries(engines).map(([name, { load, isNamedOnly = false }]) => {
    const make: EngineMaker = async () => (await load()).makeEngine((options as Record<string, object>)[name])
    return { name, make, isNamedOnly }
  })
  if (engine === 'auto') return makers.filter(({ isNamedOnly }) => !isNamedOnly).map(({ make }) => make)
  const chosen = makers.find(({ name }) => name === engine)
  if (chosen !== undefined) return [chosen.make]
  const known = ['auto', ...Object.keys(engines)]
  throw new SandglassError(
    'engine_unknown',
    `engine: unknown engine ${JSON.stringify(engine)}. Choose one of: ${known.join(', ')}`,
  )
}

/**
 * Opens the first engine that works: its first sandbox is the probe.
 * @param open starts the first sandbox and checks the requirements; it releases everything before it throws.
 * @throws the error of `open` if it does not depend on the engine; otherwise SandglassError with the common code of all refusals or
 * `engine_unavailable`; its message has the reason of each.
 */
export async function openFirstEngine<T>(
  makers: readonly EngineMaker[],
  open: (engine: SandboxEngine, passedOver: readonly PassedOver[]) => Promise<T>,
): Promise<T> {
  const passedOver: PassedOver[] = []
  const errors: unknown[] = []
  for (const make of makers) {
    const engine = await make()
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
    ['no engine works on this machine:', ...passedOver.map(({ engine, message }) => `${engine}: ${message}`)].join(
      '\n',
    ),
    { cause: new AggregateError(errors) },
  )
}

let warned = false

/** Warns once per process that the operating system does not isolate scripts. */
export function warnOfLanguageOnly(engine: string, passedOver: readonly PassedOver[]): void {
  if (warned) return
  warned = true
  const others = passedOver.map(({ engine: other, code }) => `${other} (${code})`).join(', ')
  process.emitWarning(
    `the engine ${engine} isolates scripts by WebAssembly and Node alone, not by the operating system; ` +
      'do not use it for scripts that may be written to break out' +
      (others === '' ? '' : `. Passed over: ${others}. sandglass doctor has the details`),
    { type: 'SandglassWarning', code: 'SANDGLASS_LANGUAGE_ONLY' },
  )
}
