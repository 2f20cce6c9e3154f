import { messageOf, SandglassError } from '../errors/index.ts'
import type { Sandbox } from '../sandbox/index.ts'
import type { Link } from './link.ts'

/**
 * Limits the CPU time of a workspace's sandbox until the returned object is disposed of.
 * @throws SandglassError `limit_not_enforceable`
 */
export async function lowerCpuLimit(sandbox: Sandbox, link: Link, cpus: number): Promise<AsyncDisposable> {
  if (sandbox.lowerCpuLimit === undefined) throw notEnforceable(cpus, whyFixed(sandbox))
  try {
    return restoredOrLost(link, await sandbox.lowerCpuLimit(cpus))
  } catch (error) {
    throw notEnforceable(cpus, `it could not be set: ${messageOf(error)}`)
  }
}

/** Lifts the limit, where that is possible, until the returned object is disposed of. Never throws. */
export function liftCpuLimit(sandbox: Sandbox, link: Link): AsyncDisposable {
  try {
    const lifted = sandbox.liftCpuLimit?.()
    if (lifted !== undefined) return restoredOrLost(link, lifted)
  } catch {
    // the limit stays in force: what has to end only takes longer
  }
  return { [Symbol.asyncDispose]: () => Promise.resolve() }
}

/** A sandbox whose limit cannot be restored is lost. */
function restoredOrLost(link: Link, changed: AsyncDisposable): AsyncDisposable {
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

function whyFixed({ info }: Sandbox): string {
  const { engine, limitsEnforced, limitsMissing } = info
  if (limitsEnforced.includes('cpu'))
    return `the engine ${engine} cannot change the CPU limit of a sandbox that runs; limit the whole workspace by limits.cpus of sg.workspace`
  return limitsMissing?.cpu ?? `the engine ${engine} does not limit CPU time`
}

function notEnforceable(cpus: number, why: string): SandglassError {
  return new SandglassError('limit_not_enforceable', `limits.cpus: a program cannot be held to ${cpus} CPUs: ${why}`)
}
