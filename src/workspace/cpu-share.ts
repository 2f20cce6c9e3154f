import { messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import type { Link } from './link.ts'

/**
 * Limits the CPU time of a workspace's sandbox until the returned object is disposed of.
 * @throws SandglassError `limit_not_enforceable`
 */
export async function lowerCpuLimit(sandbox: Sandbox, link: Link, cpus: number): Promise<AsyncDisposable> {
  if (sandbox.lowerCpuLimit === undefined) throw notEnforceable(cpus, explainFixed(sandbox))
  try {
    return loseUnlessRestored(link, await sandbox.lowerCpuLimit(cpus))
  } catch (error) {
    throw notEnforceable(cpus, `it could not be set: ${messageOf(error)}`)
  }
}

/** Lifts the limit, where that is possible, until the returned object is disposed of. Never throws. */
export function liftCpuLimit(sandbox: Sandbox, link: Link): AsyncDisposable {
  try {
    const lifted = sandbox.liftCpuLimit?.()
    if (lifted !== undefined) return loseUnlessRestored(link, lifted)
  } catch {
    // the limit stays in force: the end only takes longer
  }
  return { [Symbol.asyncDispose]: () => Promise.resolve() }
}

/** Declares the sandbox lost if its limit cannot be restored. */
function loseUnlessRestored(link: Link, changed: AsyncDisposable): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      try {
        await changed[Symbol.asyncDispose]()
      } catch (error) {
        link.lose(`its CPU limit could not be restored: ${messageOf(error)}`)
        throw error
      }
    },
  }
}

function explainFixed({ info }: Sandbox): string {
  const { engine, limitsEnforced, limitsMissing } = info
  if (limitsEnforced.includes('cpu'))
    return `the engine ${engine} cannot change the CPU limit of a running sandbox; limit the whole workspace with limits.cpus of sg.workspace()`
  return limitsMissing?.cpu ?? `the engine ${engine} does not limit CPU time`
}

function notEnforceable(cpus: number, why: string): SandglassError {
  return new SandglassError(
    'limit_not_enforceable',
    `limits.cpus: ${cpus} cannot be enforced in this workspace: ${why}`,
  )
}
