import type { CallOptions, Engine, EngineProvider } from './contract.ts'
import type { CodeExecutor } from './code-executor-contract.ts'
import type { RunProgramSpec } from './programs-contract.ts'

/** Provides variables for each program, such as the token of a user. */
export type RunEnvProvider = (
  options: CallOptions,
) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>

/** Variables that influence a shell or the loader before the program starts, or where programs are found. */
const DANGEROUS: ReadonlySet<string> = new Set([
  'HOME',
  'BASH_ENV',
  'ENV',
  'PROMPT_COMMAND',
  'PS4',
  'SHELL',
  'SHELLOPTS',
  'BASHOPTS',
  'PATH',
  'IFS',
  'CDPATH',
  'GLOBIGNORE',
])
const DANGEROUS_PREFIX =
  /^(?:LD_|DYLD_|BASH_FUNC_|PYTHON(?:PATH|HOME|STARTUP|INSPECT|BREAKPOINT)$|NODE_OPTIONS$|PERL5|RUBYOPT$)/
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/

/**
 * Makes an engine whose programs get the variables of a provider. Those of the spec take precedence; variables that influence shells, loaders and
 * interpreters (`PATH`, `BASH_ENV`, `LD_*` …) and invalid names are dropped. Values are never passed in argument lists.
 * @returns `engine` itself without a provider.
 */
export function newEnvInjectingEngine(engine: Engine, provider: RunEnvProvider | undefined): Engine {
  if (provider === undefined) return engine
  const withEnv = async <T extends RunProgramSpec>(spec: T, options: CallOptions): Promise<T> => ({
    ...spec,
    env: { ...safeVariables(await provider(options)), ...spec.env },
  })
  return {
    manager: () => engine.manager(),
    fs: () => engine.fs(),
    describe: () => engine.describe(),
    runner: () => {
      const inner = engine.runner()
      return {
        runProgram: async (ws, spec, options = {}) => inner.runProgram(ws, await withEnv(spec, options), options),
        ...(inner.startProgram === undefined
          ? {}
          : {
              startProgram: async (ws, spec, options = {}) =>
                // Called as a method, because the runner may be an instance of a class.
                (inner as Required<typeof inner>).startProgram(ws, await withEnv(spec, options), options),
            }),
      }
    },
  }
}

/** A code executor that {@link withEngine} can rebind. */
export interface RebindableCodeExecutor extends CodeExecutor, EngineProvider {
  /** The same executor over another engine. */
  withEngine(engine: Engine): CodeExecutor & EngineProvider
}

/**
 * Makes a code executor whose engine and blocks get the variables of a provider.
 * @returns `executor` itself if it has no engine.
 */
export function newEnvInjectingCodeExecutor<T extends CodeExecutor>(
  executor: T | RebindableCodeExecutor,
  provider: RunEnvProvider | undefined,
): T | (CodeExecutor & EngineProvider) {
  if (provider === undefined || !('withEngine' in executor)) return executor
  return executor.withEngine(newEnvInjectingEngine(executor.engine(), provider))
}

/** Selects the variables of a provider that programs get. */
export function safeVariables(given: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).filter(([name]) => NAME.test(name) && !DANGEROUS.has(name) && !DANGEROUS_PREFIX.test(name)),
  )
}
