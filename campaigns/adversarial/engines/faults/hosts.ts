import assert from 'node:assert/strict'
import { SandglassError } from '../../../../src/errors/index.ts'
import { describeAnswer } from '../../driver/answer.ts'
import type { HostProcess } from '../../driver/host-process.ts'

/** Runs a script that must succeed. */
export const runTrivialScript: (host: HostProcess) => Promise<void> = async (host) => {
  const answer = await host.run('emit_result(1)', {})
  assert.equal(answer.result?.finalData, 1, describeAnswer(answer))
}

/** Returns the error of `open` on a host. @throws Error when the host opens. */
export async function openError(
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
  throw new Error(`the host must not open, but it did; a run returned: ${describeAnswer(answer)}`)
}
