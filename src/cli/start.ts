import type { EngineTable } from '../engines/index.ts'
import type { Sandglass, SandglassOptions } from '../index.ts'
import type { CallApprover } from './call-approver.ts'
import type { Context } from './context.ts'
import { UsageError } from './failure.ts'

/**
 * Starts the library for a command; the command's signal cancels the start.
 * @param given approves calls of tools; by default a person at the terminal.
 * @throws UsageError for a value that a flag of an engine cannot have.
 */
export async function startSandglass(
  options: SandglassOptions,
  context: Context,
  given?: CallApprover,
): Promise<Sandglass> {
  const { signal, engines } = context
  // Loaded here, so that errors about flags are fast.
  const { createSandglass } = await import('../sandglass.ts')
  const approver = given ?? new (await import('./approve-calls.ts')).CallApprovals(context)
  try {
    const sandglass = await createSandglass({ onPending: approver.onPending, ...options, signal })
    approver.sandglass = sandglass
    return sandglass
  } catch (error) {
    throw wrongFlag(error, engines) ?? error
  }
}

/** Turns an engine's error about one of its options into an error about the flag that sets it. */
function wrongFlag(error: unknown, engines: EngineTable): UsageError | undefined {
  if (!(error instanceof TypeError)) return undefined
  for (const [name, { flags }] of Object.entries(engines)) {
    for (const [flag, { option }] of Object.entries(flags)) {
      const start = `${name}.${option}: `
      if (!error.message.startsWith(start)) continue
      return new UsageError('invalid_request', `${flag}: ${error.message.slice(start.length)}`, { cause: error })
    }
  }
  return undefined
}
