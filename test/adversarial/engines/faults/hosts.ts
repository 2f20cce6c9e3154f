import assert from 'node:assert/strict'
import { SandglassError } from '../../../../src/errors/index.ts'
import { shown } from '../../driver/answer.ts'
import type { HostProcess } from '../../driver/host-process.ts'

/** A run that must be fine. */
export const trivial: (host: HostProcess) => Promise<void> = async (host) => {
  const answer = await host.run('emit_result(1)', {})
  assert.equal(answer.result?.finalData, 1, shown(answer))
}

/** The error that keeps a host from opening; it throws when there is none. */
export async function refusalOf(
  host: HostProcess,
  options: Parameters<HostProcess['open']>[0] = {},
): Promise<SandglassError> {
  try {
    await host.open(options)
  } catch (error) {
    if (error instanceof SandglassError) return error
    throw error
  }
  const answer = await host.run('emit_result(1)', {})
  throw new Error(`it opened, and a run came to: ${shown(answer)}`)
}
